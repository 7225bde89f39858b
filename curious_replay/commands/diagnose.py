"""`curious doctor`: what this machine has and what is missing."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import tyro
from rich.console import Console

from curious_replay import doctor


@dataclass(frozen=True)
class Doctor:
    """Report what this machine has and what to do about what is missing."""

    folder: Path = Path()
    """Where runs will be written: its disk is looked at."""
    pictures: int = 200
    """How many pictures each camera draws to measure its speed."""
    report: Path | None = None
    """File (JSON) to write all of this into, with a short measurement of updates, to be sent on."""


def main(arguments: Sequence[str], console: Console) -> int:
    """Print the report; 1 if something necessary is missing."""
    command = tyro.cli(Doctor, args=list(arguments), prog="curious doctor")
    findings = list(doctor.examine(command.folder, command.pictures))
    code = doctor.print_report(console, findings)
    if command.report is not None:
        from curious_replay.run.trial import write_report  # noqa: PLC0415  # needs torch

        write_report(command.report, [asdict(each) for each in findings])
        console.print(f"written to {command.report}", highlight=False, soft_wrap=True)
    return code
