"""One model until the ball appears, two afterwards: one replays uniformly, the other curiously.

Both go on from the same weights and learn from the same new steps; they differ in nothing but
which of their steps they replay.
"""

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from curious_replay.demo import stream
from curious_replay.demo.model import ModelTrainer
from curious_replay.demo.plan import Plan
from curious_replay.replay import Curious, ReplayBuffer, Rule, Uniform
from curious_replay.run_folder import CHECKPOINTS, CONFIG, REPLAY, STATE, checkpoint_name

Array = np.ndarray
Tick = Callable[[], None]
"""Called after each update."""
RULES: dict[str, type[Rule]] = {"uniform": Uniform, "curious": Curious}
TO_TRAIN, TO_TEST = 0, 1
"""Which drives of a seed."""


@dataclass
class Branch:
    """What became of one branch."""

    dream: Array
    """Test pictures as the model sees and then predicts them after its last update, uint8
    [B, T, H, W, 3]."""
    errors: list[float] = field(default_factory=list)
    """On the ball's pixels: before the first update, and after every `test_every`."""
    pictures: list[Array] = field(default_factory=list)
    """What was predicted for a step of the first test window at each of these times."""
    shares: list[float] = field(default_factory=list)
    """Of the steps that each update replayed, those from after the ball appeared."""


@dataclass(frozen=True)
class Trial:
    """Both branches of one seed."""

    seed: int
    truth: Array
    """The test windows, uint8 [B, T, H, W, 3]; the first has a clear view of the ball."""
    branches: dict[str, Branch]


def run_trial(seed: int, plan: Plan, folder: Path | None, tick: Tick) -> Trial:
    """Train one model on the empty arena, then both branches; leave their replay in `folder`."""
    steps = stream.explore((seed, TO_TRAIN), plan.arenas, plan.before, plan.after)
    unseen = stream.explore((seed, TO_TEST), plan.arenas, 0, plan.test_steps)
    tests = stream.ball_windows(unseen, plan.seen, plan.ahead, plan.test_windows)
    learner = ModelTrainer(seed, plan.learning_rate, plan.seen)
    buffers = {
        name: ReplayBuffer(
            plan.old_steps + plan.arenas * plan.after, plan.length, plan.arenas, rule(), seed=seed
        )
        for name, rule in RULES.items()
    }
    for buffer in buffers.values():
        for time in range(plan.before):
            _add(buffer, steps, time)
    for _ in range(plan.shared_updates):
        # Drawn once, uniformly; both buffers are told, so that both know visits and losses.
        batch = buffers["uniform"].sample(plan.windows)
        signals = learner.update(batch)
        for buffer in buffers.values():
            buffer.update(batch.ids, signals)
        tick()
    branches = {}
    for name, buffer in buffers.items():
        branches[name] = _run_branch(copy.deepcopy(learner), buffer, steps, tests, plan, tick)
        if folder is not None:
            save_replay(buffer, name, seed, plan, folder / name)
    return Trial(seed, tests["image"], branches)


def _run_branch(
    learner: ModelTrainer,
    buffer: ReplayBuffer,
    steps: stream.Steps,
    tests: stream.Steps,
    plan: Plan,
    tick: Tick,
) -> Branch:
    branch = Branch(dream=tests["image"])

    def test() -> None:
        branch.dream = learner.dream(tests)
        branch.errors.append(ball_error(tests["image"], branch.dream, plan.seen))
        branch.pictures.append(branch.dream[0, plan.shown].copy())

    test()
    for update in range(plan.updates):
        if update % plan.updates_per_step == 0:
            _add(buffer, steps, plan.before + update // plan.updates_per_step)
        batch = buffer.sample(plan.windows)
        buffer.update(batch.ids, learner.update(batch))
        branch.shares.append(float((batch.ids >= plan.old_steps).mean()))
        if (update + 1) % plan.test_every == 0:
            test()
        tick()
    return branch


def _add(buffer: ReplayBuffer, steps: stream.Steps, time: int) -> None:
    buffer.add({name: values[time] for name, values in steps.items()})


def ball_error(truth: Array, dream: Array, seen: int) -> float:
    """Return the mean squared error of what was predicted on the ball's pixels, values from 0 to 1.

    `truth` and `dream` are uint8 [B, T, H, W, 3], and predictions begin after `seen` steps. Each
    picture counts alike, however large its ball is; each must show one.
    """
    real, predicted = truth[:, seen:], dream[:, seen:]
    squares = ((predicted / 255.0 - real / 255.0) ** 2).mean(-1)
    ball = stream.is_ball(real)
    return float(((squares * ball).sum((-2, -1)) / ball.sum((-2, -1))).mean())


def save_replay(buffer: ReplayBuffer, name: str, seed: int, plan: Plan, folder: Path) -> None:
    """Leave a run folder with nothing but settings and replay, for the explorer to read."""
    frames_per_step = stream.FRAMES_PER_STEP * plan.arenas
    step = plan.before + plan.after
    checkpoint = folder / CHECKPOINTS / checkpoint_name(1, step * plan.arenas)
    checkpoint.mkdir(parents=True)
    buffer.save(checkpoint / REPLAY)
    counters = {"frame": step * frames_per_step, "step": step * plan.arenas}
    (checkpoint / STATE).write_text(json.dumps({"counters": counters}))
    config = {
        "choice": {"replay": name},
        "seed": seed,
        "env": {
            "action_repeat": stream.FRAMES_PER_STEP,
            "schedule": [[0, "empty"], [frames_per_step * plan.before, "ball"]],
        },
    }
    (folder / CONFIG).write_text(json.dumps(config))
