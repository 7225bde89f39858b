"""The runs of an experiment: their settings, their names, and which of them begin as one trunk.

Runs are named by what they are (environment, agent, replay, changed settings, seed) and not by the
experiment, so that experiments share them: the baseline of five tables is trained once. A branch is
also named by its trunk, as it is another run than one that had its settings from the first step on.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curious_replay.errors import UsageError
from curious_replay.experiments.experiment import Experiment, Method, Trunk
from curious_replay.experiments.standard import standard
from curious_replay.run.settings.allowed import FORKABLE, may_change, not_allowed
from curious_replay.run.settings.config import Choice, Config, differences
from curious_replay.run.settings.config_io import option
from curious_replay.run.settings.env_config import family_of
from curious_replay.run.settings.presets import Settings, changed

LONGEST = 200
"""Characters of a run's name; file systems allow 255, and .log or the like is added to it."""
UNNAMED = (option("train.threads"), option("record.keep_at"))
"""Settings that are left out of names: they decide nothing of a run that is compared."""


@dataclass(frozen=True)
class Job:
    """One run of an experiment."""

    task: str
    method: Method
    config: Config
    trunk: "Job | None" = None
    """The run that it begins as, until that one's last step."""

    @property
    def name(self) -> str:
        """Name of its folder: what it is, not what it is for; equal settings have equal names.

        Of a name that is too long for a folder, a hash stands for the end of the settings.
        """
        choice, seed = self.config.choice, self.config.seed
        changes = differences(standard(choice, seed), self.config)
        parts = [choice.env, choice.agent, choice.replay]
        parts += [*_told(changes), *self._origin(), f"seed={seed}"]
        name = "-".join(re.sub(r"[^A-Za-z0-9.=_+]+", "-", part) for part in parts)
        if len(name) <= LONGEST:
            return name
        end = f"-{hashlib.sha256(name.encode()).hexdigest()[:10]}-seed={seed}"
        return name[: LONGEST - len(end)] + end

    def _origin(self) -> list[str]:
        """Return what its trunk was, as far as its own settings do not tell."""
        if self.trunk is None:
            return []
        trunk = self.trunk.config
        changes = differences(self.config, trunk)
        own = {name: change for name, change in changes.items() if not _of_replay(name)}
        own.pop(option("train.steps"))
        preset = differences(standard(trunk.choice, trunk.seed), trunk)
        own |= {name: change for name, change in preset.items() if _of_replay(name)}
        begin = f"from={trunk.choice.replay}-{trunk.train.steps}"
        return [begin, *(f"from.{text}" for text in _told(own))]

    def folder(self, runs: Path) -> Path:
        """Return its folder below that of all runs."""
        return runs / self.config.choice.scale / self.name

    @property
    def updates(self) -> int:
        """How often its agent learns, since it left its trunk."""
        return self.config.updates(0 if self.trunk is None else self.trunk.config.train.steps)


def jobs(
    experiment: Experiment,
    scale: str,
    seeds: int | None = None,
    threads: int = 1,
    first_seed: int | None = None,
    backgrounds: Settings | None = None,
) -> list[Job]:
    """Return all runs but trunks, those of a seed together.

    There are `seeds` of each task and method, from `first_seed` on; by default as many as in the
    paper, from 0 on or as registered. `backgrounds` are settings of tasks in front of pictures
    only.
    """
    if scale not in experiment.scales:
        known = ", ".join(experiment.scales)
        raise UsageError(f"--scale must be one of {known} for {experiment.name}, got {scale!r}")
    count = (1 if scale == "debug" else experiment.seeds) if seeds is None else seeds
    if count < 1:
        raise UsageError(f"--seeds must be at least 1, got {count}")
    registered = experiment.registered_at(scale)
    if first_seed is None:
        first_seed = 0 if registered is None else registered.first_seed
    if first_seed < 0:
        raise UsageError(f"--first-seed must be at least 0, got {first_seed}")
    cells = experiment.cells(scale)
    if backgrounds and not any(family_of(task) == "background" for task, _ in cells):
        raise UsageError(f"--images and --clips: no task of {experiment.name} has backgrounds")
    shared = {**experiment.settings.get(scale, {}), "train.threads": threads}
    made = []
    for seed in range(first_seed, first_seed + count):
        for task, method in cells:
            of_task = {**shared, **((backgrounds or {}) if family_of(task) == "background" else {})}
            choice = Choice(env=task, agent=method.agent, replay=method.replay, scale=scale)
            config = changed(standard(choice, seed), {**of_task, **method.settings})
            trunk = None
            if experiment.trunk is not None:
                trunk = _trunk(experiment.trunk, task, method, config, of_task)
            made.append(Job(task, method, config, trunk))
    return made


def with_trunks(wanted: Iterable[Job]) -> list[Job]:
    """Return these runs, and before the first of its branches each trunk, once."""
    found: dict[str, Job] = {}
    for job in wanted:
        if job.trunk is not None:
            found.setdefault(job.trunk.name, job.trunk)
        found[job.name] = job
    return [*found.values()]


def _trunk(trunk: Trunk, task: str, method: Method, branch: Config, shared: Settings) -> Job:
    """Return the run that a branch begins as.

    It has the branch's settings, but for those that change where the branch begins.
    """
    own = {
        path: value
        for path, value in method.settings.items()
        if not may_change(option(path), FORKABLE)
    }
    choice = Choice(**{**vars(branch.choice), "replay": trunk.replay})
    config = changed(standard(choice, branch.seed), {**shared, **own, **trunk.settings})
    until = _until(trunk, config)
    if not 0 < until < branch.train.steps:
        raise UsageError(
            f"a trunk must end before its branches do, at step {branch.train.steps} "
            f"(--train.steps), got {until}"
        )
    # Kept, so that its agent reports all signals: a branch may read one that the trunk does not.
    config = changed(config, {"train.steps": until, "record.keep_at": (until,)})
    for name, (before, now) in not_allowed(config, branch, FORKABLE).items():
        raise UsageError(
            f"{name} is {before} in the trunk and cannot be {now} in its branch {method.name}; "
            f"what may differ: {', '.join(FORKABLE)}"
        )
    return Job(task, Method("trunk", method.agent, trunk.replay), config)


def _until(trunk: Trunk, config: Config) -> int:
    scale = config.choice.scale
    if isinstance(trunk.until, int):
        return trunk.until
    if trunk.until != "change":
        if scale not in trunk.until:
            raise UsageError(
                f"the trunk ends at {dict(trunk.until)}, which has no step for {scale}"
            )
        return trunk.until[scale]
    schedule: Sequence[tuple[int, str]] = getattr(config.env, "schedule", None) or ()
    if len(schedule) < 2:
        raise UsageError(
            f"the trunk is to end when {config.choice.env} first changes, but --env.schedule in "
            f"the settings for {scale} scale names no change: say the step, Trunk(until=...)"
        )
    return int(schedule[1][0]) * config.env.num_envs // config.env.frames_per_step


def _of_replay(name: str) -> bool:
    return name == "--replay" or name.startswith("--replay.")


def _told(changes: Mapping[str, tuple[Any, Any]]) -> list[str]:
    """Return settings as parts of a name."""
    return [
        f"{path.removeprefix('--')}={value}"
        for path, (_, value) in sorted(changes.items())
        if path not in UNNAMED
    ]
