"""`curious fork RUN`: begin a new run where another one was saved, and train on.

The options are those of `curious train`; what is not given is as in RUN. PyTorch is imported when
the options are known to be right: help and mistakes come at once.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from curious_replay import plugins
from curious_replay.commands.settings import (
    Argument,
    SettingsCommand,
    given,
    refuse_old_names,
    values_of,
)
from curious_replay.commands.train import carry_out, reason
from curious_replay.errors import UsageError
from curious_replay.run.record.record_files import read_meta
from curious_replay.run.settings.config import Choice, load_config
from curious_replay.run.settings.config_io import Whole
from curious_replay.run.settings.presets import preset, with_replay


@dataclass(frozen=True, kw_only=True)
class ForkCommand(SettingsCommand):
    """Begin a new run from a checkpoint of another; what is not given is as in that one."""

    run: Annotated[tyro.conf.Positional[Path], Argument(metavar="RUN", help="Run folder to fork.")]
    logdir: Path
    """Folder of the new run."""
    at: Whole | None = None
    """Step of the checkpoint to begin from: one of --record.keep-at, or one that is still there; by
    default the newest."""


def parse(arguments: Sequence[str]) -> ForkCommand:
    """Read the command line; RUN comes first, since it decides which options there are."""
    named = bool(arguments) and not arguments[0].startswith("-")
    if not named and not {"-h", "--help"} & {*arguments}:
        raise UsageError("name the run first: curious fork RUN --logdir NEW [OPTIONS]")
    if named:
        plugins.confirm(Path(arguments[0]))
    base = load_config(arguments[0]) if named else preset(Choice())
    for name in ("env", "agent", "scale"):
        there, value = getattr(base.choice, name), given(arguments, name)
        if named and value not in (None, there):
            raise UsageError(
                f"--{name} is {there} in {arguments[0]} and cannot be {value} in a fork of it: "
                "leave it out"
            )
    base = with_replay(base, given(arguments, "replay") or base.choice.replay)
    refuse_old_names(arguments, base)
    return tyro.cli(
        ForkCommand,
        default=ForkCommand(**values_of(base), run=tyro.MISSING, logdir=tyro.MISSING),
        args=list(arguments),
        prog="curious fork",
        description=ForkCommand.__doc__,
    )


def main(arguments: Sequence[str], console: Console) -> int:
    """Fork, then train; returns what `curious train` does."""
    command = parse(arguments)
    config, folder = command.config, command.logdir
    from curious_replay.run.forking import fork_run  # noqa: PLC0415

    try:
        fork_run(command.run, folder, config, command.at)
    except OSError as error:
        print(f"curious: {reason(error, folder)}", file=sys.stderr)
        return 1
    origin = read_meta(folder)["parent"]
    console.print(
        f"fork of {command.run} at step {origin['step']:,} (checkpoint {origin['checkpoint']}, "
        f"checksum {origin['checksum']})",
        highlight=False,
        soft_wrap=True,
    )
    return carry_out(config, folder, True, console)
