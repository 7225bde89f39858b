"""`curious experiments`: the paper's tables and figures, and what they cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import tyro
from rich.console import Console
from rich.table import Table

from curious_replay.experiments.catalogue import experiments
from curious_replay.experiments.hours import Hours, short
from curious_replay.experiments.listing import cost
from curious_replay.run.settings.config import Scale


@dataclass(frozen=True)
class ExperimentsCommand:
    """List all experiments: where they are in the paper, how many runs and updates they take.

    And how many hours here, which is measured: for some seconds, a minute or two at paper scale.
    """

    scale: Scale = "mini"
    """Size of the runs."""
    seeds: int | None = None
    """Runs of each task and method; by default about as many as in the paper."""
    hours: bool = True
    """Measure how long they take on this machine: hours of one core, or of a graphics card."""


def main(arguments: Sequence[str], console: Console) -> int:
    """Print the table."""
    command = tyro.cli(ExperimentsCommand, args=list(arguments), prog="curious experiments")
    table = Table(box=None, pad_edge=False)
    numbers = ("runs", "updates", *(("hours",) if command.hours else ()))
    for name in ("experiment", "in the paper", *numbers):
        wraps = name == "in the paper"
        table.add_column(name, no_wrap=not wraps, justify="right" if name in numbers else "left")
    measure = Hours() if command.hours else None
    known = experiments()
    with console.status("measuring how long an update takes here"):
        for experiment in known.values():
            takes = cost([experiment], command.scale, command.seeds, measure)
            told = (str(takes.runs), takes.short_updates, short(takes.hours))
            row = told if takes.runs else ("–",) * len(told)
            table.add_row(experiment.name, experiment.where, *row[: len(numbers)])
        everything = cost(known.values(), command.scale, command.seeds, measure)
    console.print(table)
    hours = f", {short(everything.hours)} hours" if command.hours else ""
    console.print(
        f"All at {command.scale} scale: {everything}{hours}; "
        "runs that several need are made once. `curious sweep EXPERIMENT` runs one.",
        highlight=False,
    )
    if command.hours:
        console.print(
            "Hours are of updates alone, of one core (or of a graphics card, if there is one), by "
            "a short measurement on this machine.",
            highlight=False,
        )
    return 0
