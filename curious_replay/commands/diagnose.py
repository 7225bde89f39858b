"""`curious doctor`: what this machine has and what is missing."""

from collections.abc import Sequence
from dataclasses import dataclass
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


def main(arguments: Sequence[str], console: Console) -> int:
    """Print the report; 1 if something necessary is missing."""
    command = tyro.cli(Doctor, args=list(arguments), prog="curious doctor")
    return doctor.print_report(console, command.folder, command.pictures)
