"""Tables 3 and 11, Figures 23 and 24: what does Curious Replay cost where nothing changes?

The figures are the learning curves of DreamerV2 and DreamerV3 that the report draws.

The paper's DreamerV3 numbers are of its publication. Of DreamerV2 the paper says that Curious
Replay makes it slightly worse.
"""

from curious_replay.experiments.control.control_return import final_return
from curious_replay.experiments.experiment import MEDIAN, OVERALL, Claim, Experiment, Reported
from curious_replay.experiments.rows import row

METHODS = V3_CURIOUS, V3, V2_CURIOUS, V2 = (
    row("dreamerv3", "curious"),
    row("dreamerv3", "uniform"),
    row("dreamerv2", "curious"),
    row("dreamerv2", "uniform"),
)
RUNS = (3, None, 2, 2)
TABLE = {  # in the order of METHODS
    "acrobot_swingup": (172.9, 210.0, 36.3, 321.5),
    "cartpole_balance": (996.4, 996.4, 990.9, 994.3),
    "cartpole_balance_sparse": (1000.0, 1000.0, 985.6, 991.5),
    "cartpole_swingup": (858.5, 819.1, 801.6, 871.0),
    "cartpole_swingup_sparse": (346.3, 792.9, 328.7, 723.2),
    "cheetah_run": (852.7, 728.7, 578.3, 786.4),
    "cup_catch": (969.5, 957.1, 958.8, 960.7),
    "finger_spin": (557.9, 818.5, 552.2, 357.0),
    "finger_turn_easy": (906.3, 787.7, 483.8, 752.8),
    "finger_turn_hard": (777.6, 810.8, 404.5, 845.3),
    "hopper_hop": (385.1, 369.6, 161.8, 253.5),
    "hopper_stand": (936.7, 900.6, 543.4, 756.7),
    "pendulum_swingup": (566.4, 806.3, 743.5, 784.8),
    "quadruped_run": (431.1, 352.3, 495.0, 549.7),
    "quadruped_walk": (750.8, 352.6, 880.5, 549.4),
    "reacher_easy": (956.5, 898.9, 977.1, 915.9),
    "reacher_hard": (518.8, 499.2, 345.7, 498.8),
    "walker_run": (772.8, 757.8, 693.3, 526.7),
    "walker_stand": (978.5, 976.7, 977.0, 971.4),
    "walker_walk": (961.7, 955.8, 933.9, 904.1),
}
TOGETHER = {OVERALL: (734.8, 739.6, 643.6, 715.7), MEDIAN: (815.1, 808.5, 635.8, 770.7)}
PAPER = {
    (task, method.name): Reported(number, n=n)
    for task, numbers in {**{f"control/{t}": row for t, row in TABLE.items()}, **TOGETHER}.items()
    for method, number, n in zip(METHODS, numbers, RUNS, strict=True)
}

EXPERIMENT = Experiment(
    name="control-suite",
    where="Tables 3 and 11, Figures 23 and 24",
    title="Return on 20 control tasks that do not change",
    tasks=tuple(f"control/{task}" for task in TABLE),
    methods=METHODS,
    measures=(final_return(PAPER),),
    claim=Claim(
        "DreamerV3 with Curious Replay does as well as with uniform replay, over all tasks",
        [(V3_CURIOUS.name, V3.name)],
        kind="no worse",
        margin=0.1,
    ),
    seeds=3,
    debug_methods=(V3_CURIOUS.name, V3.name),
)
