"""The control tasks by name, for those that make them and those that list them."""

CONTROL = {
    "acrobot_swingup": "swing two links up from the elbow",
    "cartpole_balance": "keep the pole up",
    "cartpole_balance_sparse": "keep the pole up, sparse reward",
    "cartpole_swingup": "swing the pole up",
    "cartpole_swingup_sparse": "swing the pole up, sparse reward",
    "cheetah_run": "a planar cheetah runs",
    "cup_catch": "catch a ball on a string in a cup",
    "finger_spin": "spin a hinged body",
    "finger_turn_easy": "turn a hinged body to a large target",
    "finger_turn_hard": "turn a hinged body to a small target",
    "hopper_hop": "one leg hops forward",
    "hopper_stand": "one leg stands",
    "pendulum_swingup": "swing up with little torque",
    "quadruped_run": "four legs run",
    "quadruped_walk": "four legs walk",
    "reacher_easy": "reach a large target with two links",
    "reacher_hard": "reach a small target with two links",
    "walker_run": "two planar legs run",
    "walker_stand": "two planar legs stand",
    "walker_walk": "two planar legs walk",
}
"""The 20 tasks of the paper's control-suite table, in its order, and what each is."""

CONSTRAINED = {
    "cup_catch": "the ball hangs low",
    "cartpole_swingup_sparse": "the pole hangs down",
    "cheetah_run": "four stiff joints",
}
"""Those with bodies that can be held, and how they are."""

BACKGROUND_SWAP = (
    "walker_walk",
    "cartpole_swingup_sparse",
    "cartpole_balance",
    "walker_run",
    "reacher_easy",
)
"""Those whose background the paper swaps, in the order of its table."""
