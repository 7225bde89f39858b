"""`curious train`: names choose a preset, and every setting of it is an option.

PyTorch is imported when the options are known to be right: help and mistakes come at once.
"""

import errno
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from curious_replay.run.agents import AGENTS
from curious_replay.run.config import SCALES, Choice, Config, EvalConfig, RecordConfig, TrainConfig
from curious_replay.run.env_config import EnvConfig
from curious_replay.run.presets import preset
from curious_replay.run.replay_config import REPLAYS, ReplayConfig

Argument = tyro.conf.arg
SELECTORS = ("env", "agent", "replay", "scale")


@dataclass(frozen=True, kw_only=True)
class TrainCommand:
    """Train an agent. The first four options choose a preset; all others change it."""

    env_name: Annotated[
        str,
        Argument(
            name="env",
            help="Environment: a name of `curious envs`, a Gymnasium id, or module:Class.",
        ),
    ]
    agent_name: Annotated[str, Argument(name="agent", help=f"Agent: {', '.join(AGENTS)}.")]
    replay_name: Annotated[str, Argument(name="replay", help=f"Replay: {', '.join(REPLAYS)}.")]
    scale: Annotated[
        str,
        Argument(
            help=f"{', '.join(SCALES)}: as published (needs a graphics card), two CPU cores for "
            "some minutes, or some seconds to see that it runs."
        ),
    ]
    seed: int = 0
    """Seed of everything that is random."""
    logdir: Path | None = None
    """Run folder; by default runs/ENV-AGENT-REPLAY-SCALE-SEED."""
    resume: bool = False
    """Go on with the run in the folder, if there is one; its settings need not be repeated."""
    env: EnvConfig
    agent: Any
    replay: ReplayConfig
    train: TrainConfig
    eval: EvalConfig
    record: RecordConfig

    @classmethod
    def of(cls, config: Config) -> "TrainCommand":
        """The command that stands for these settings."""
        choice = config.choice
        return cls(
            env_name=choice.env,
            agent_name=choice.agent,
            replay_name=choice.replay,
            scale=choice.scale,
            seed=config.seed,
            **{name: getattr(config, name) for name in _groups()},
        )

    @property
    def config(self) -> Config:
        """The settings that were asked for."""
        choice = Choice(
            env=self.env_name, agent=self.agent_name, replay=self.replay_name, scale=self.scale
        )
        groups = {name: getattr(self, name) for name in _groups()}
        return Config(choice=choice, seed=self.seed, **groups)

    @property
    def folder(self) -> Path:
        """Where the run is written."""
        if self.logdir is not None:
            return self.logdir
        names = (self.env_name, self.agent_name, self.replay_name, self.scale)
        name = "-".join(each.replace("/", "-").replace(":", "-") for each in names)
        return Path("runs") / f"{name}-{self.seed}"


def parse(arguments: Sequence[str]) -> TrainCommand:
    """Read the command line: which options there are depends on the names that are chosen."""
    given = {name: _given(arguments, name) for name in (*SELECTORS, "logdir", "seed")}
    chosen = {name: given[name] for name in SELECTORS if given[name] is not None}
    base = preset(Choice(**chosen))  # type: ignore[arg-type]  # which refuses wrong names
    if "--resume" in arguments:
        before = _run_to_resume(base, given)
        if before is not None:
            for name, value in chosen.items():
                if value != getattr(before.choice, name):
                    raise ValueError(
                        f"--{name} was {getattr(before.choice, name)} in this run and cannot "
                        f"become {value}: leave it out to resume, or choose another --logdir"
                    )
            base = before
    return tyro.cli(
        TrainCommand,
        default=TrainCommand.of(base),
        args=list(arguments),
        prog="curious train",
        description=TrainCommand.__doc__,
    )


def main(arguments: Sequence[str], console: Console) -> int:
    """Train; 0 if the run is complete, 128 + signal if it was stopped, 1 if training failed."""
    command = parse(arguments)
    from curious_replay.envs.pool import WorkerError  # noqa: PLC0415
    from curious_replay.run.learner import TrainingFailedError  # noqa: PLC0415
    from curious_replay.run.training import IN_TRAINING, train  # noqa: PLC0415

    config, folder = command.config, command.folder
    console.print(f"run folder: {folder}", highlight=False, soft_wrap=True)
    try:
        outcome = train(config, folder, resume=command.resume, console=console)
    except (TrainingFailedError, WorkerError, OSError) as error:
        print(f"curious: {_reason(error, folder)}{_way_on(folder)}", file=sys.stderr)
        return 1
    except Exception as error:
        if IN_TRAINING not in getattr(error, "__notes__", ()):
            raise  # what was asked for is wrong
        traceback.print_exception(error)  # of an agent or environment of the user's, most likely
        print(f"curious: training failed, see above.{_way_on(folder)}", file=sys.stderr)
        return 1
    if outcome.signal is not None and not outcome.finished:
        name = signal.Signals(outcome.signal).name
        console.print(
            f"stopped by {name} at step {outcome.step:,}, saved: `curious train --logdir {folder} "
            "--resume` goes on",
            highlight=False,
            soft_wrap=True,
        )
        return 128 + outcome.signal
    console.print(f"complete: {outcome.step:,} steps in {folder}", highlight=False, soft_wrap=True)
    return 0


def _reason(error: Exception, folder: Path) -> str:
    """What ended the run, and what would be right."""
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(folder).free if folder.exists() else 0
        return f"the disk of {folder} is full ({free:,} bytes are free): make room there. {error}"
    if number in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{folder} cannot be written to: mend that, or choose another --logdir. {error}"
    return str(error)


def _way_on(folder: Path) -> str:
    """How to go on from the last checkpoint, if there is one."""
    from curious_replay.run.checkpoint import Checkpoints  # noqa: PLC0415

    saved = Checkpoints(folder / "checkpoints").all()
    if not saved:
        return ""
    step = saved[0].name.rpartition("-")[2]
    return f"\nsaved last at step {step}: `curious train --logdir {folder} --resume` goes on there"


def _run_to_resume(base: Config, given: dict[str, str | None]) -> Config | None:
    """The settings of the run that is to go on; None if there is none yet."""
    seed = given["seed"] or "0"
    if not seed.isdecimal():
        raise ValueError(f"--seed must be a whole number from 0 on, got {seed!r}")
    command = replace(TrainCommand.of(base), seed=int(seed))
    folder = Path(os.fspath(given["logdir"])) if given["logdir"] else command.folder
    if not (folder / "config.json").exists():
        return None
    from curious_replay.run.config import load_config  # noqa: PLC0415

    return load_config(folder)


def _given(arguments: Sequence[str], name: str) -> str | None:
    """The value of an option on the command line; the last one counts."""
    value = None
    for index, text in enumerate(arguments):
        if text == f"--{name}" and index + 1 < len(arguments):
            value = arguments[index + 1]
        elif text.startswith(f"--{name}="):
            value = text.partition("=")[2]
    return value


def _groups() -> tuple[str, ...]:
    return ("env", "agent", "replay", "train", "eval", "record")
