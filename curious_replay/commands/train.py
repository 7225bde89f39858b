"""`curious train`: names choose a preset, and every setting of it is an option.

PyTorch is imported when the options are known to be right: help and mistakes come at once.
"""

import errno
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import tyro
from rich.console import Console

from curious_replay import launch, plugins
from curious_replay.commands.settings import (
    SELECTORS,
    SettingsCommand,
    given,
    refuse_old_names,
    values_of,
)
from curious_replay.errors import UsageError
from curious_replay.run.settings.config import Choice, Config, load_config
from curious_replay.run.settings.presets import preset
from curious_replay.run_folder import CHECKPOINTS, CONFIG


@dataclass(frozen=True, kw_only=True)
class TrainCommand(SettingsCommand):
    """Train an agent. The first four options choose a preset; all others change it."""

    logdir: Path | None = None
    """Run folder; by default runs/ENV-AGENT-REPLAY-SCALE-SEED."""
    resume: bool = False
    """Go on with the run in the folder, if there is one; its settings need not be repeated."""

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
    values = {name: given(arguments, name) for name in (*SELECTORS, "logdir", "seed")}
    chosen = {name: value for name in SELECTORS if (value := values[name]) is not None}
    base = preset(Choice(**chosen))  # which refuses wrong names
    if "--resume" in arguments:
        before = _run_to_resume(base, values)
        if before is not None:
            for name, value in chosen.items():
                if value != getattr(before.choice, name):
                    raise UsageError(
                        f"--{name} was {getattr(before.choice, name)} in this run and cannot "
                        f"become {value}: leave it out to resume, or choose another --logdir"
                    )
            base = before
    refuse_old_names(arguments, base)
    return tyro.cli(
        TrainCommand,
        default=TrainCommand(**values_of(base)),
        args=list(arguments),
        prog="curious train",
        description=TrainCommand.__doc__,
    )


def main(arguments: Sequence[str], console: Console) -> int:
    """Train; 0 if the run is complete, 128 + signal if it was stopped, 1 if training failed.

    Of several processes only the first knows what was asked for; the others do as it says.
    """
    if launch.number():
        from curious_replay.run.following import follow  # noqa: PLC0415

        follow()
        return 0
    command = parse(arguments)
    return carry_out(command.config, command.folder, command.resume, console)


def carry_out(config: Config, folder: Path, resume: bool, console: Console) -> int:
    """Train in a folder, and tell how that ended; the code is that of `main`."""
    from curious_replay.envs.vectors.pool import WorkerError  # noqa: PLC0415
    from curious_replay.run.loop.crew import CrewError  # noqa: PLC0415
    from curious_replay.run.loop.learner import TrainingFailedError  # noqa: PLC0415
    from curious_replay.run.training import IN_TRAINING, train  # noqa: PLC0415

    console.print(f"run folder: {folder}", highlight=False, soft_wrap=True)
    try:
        outcome = train(config, folder, resume=resume, console=console)
    except (TrainingFailedError, WorkerError, CrewError, OSError) as error:
        print(f"curious: {reason(error, folder)}{_way_on(folder)}", file=sys.stderr)
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
            f"stopped by {name} at step {outcome.step:,}, saved: `{plugins.resuming(folder)}` "
            "goes on",
            highlight=False,
            soft_wrap=True,
        )
        return 128 + outcome.signal
    console.print(f"complete: {outcome.step:,} steps in {folder}", highlight=False, soft_wrap=True)
    return 0


def reason(error: Exception, folder: Path) -> str:
    """Return what ended the run, and what would be right."""
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT):
        free = shutil.disk_usage(folder).free if folder.exists() else 0
        return f"the disk of {folder} is full ({free:,} bytes are free): make room there. {error}"
    if number in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{folder} cannot be written to: mend that, or choose another --logdir. {error}"
    return str(error)


def _way_on(folder: Path) -> str:
    """Return how to go on from the last checkpoint; "" if there is none."""
    from curious_replay.run.record.checkpoint import Checkpoints  # noqa: PLC0415

    saved = Checkpoints(folder / CHECKPOINTS).all()
    if not saved:
        return ""
    step = saved[0].name.rpartition("-")[2]
    return f"\nsaved last at step {step}: `{plugins.resuming(folder)}` goes on there"


def _run_to_resume(base: Config, values: Mapping[str, str | None]) -> Config | None:
    """Return the settings of the run that is to go on; None if there is no such run yet."""
    seed = values["seed"] or "0"
    if not seed.isdecimal():
        raise UsageError(f"--seed must be a whole number from 0 on, got {seed!r}")
    command = replace(TrainCommand(**values_of(base)), seed=int(seed))
    folder = Path(os.fspath(values["logdir"])) if values["logdir"] else command.folder
    if not (folder / CONFIG).exists():
        return None
    plugins.confirm(folder)
    return load_config(folder)
