"""`curious experiments`: the paper's tables and figures, and what they cost."""

from collections.abc import Sequence
from dataclasses import dataclass

import tyro
from rich.console import Console
from rich.table import Table

from curious_replay.experiments.catalogue import experiments
from curious_replay.experiments.listing import cost
from curious_replay.run.settings.config import Scale


@dataclass(frozen=True)
class ExperimentsCommand:
    """List all experiments: where they are in the paper, how many runs and updates they take."""

    scale: Scale = "mini"
    """Size of the runs."""
    seeds: int | None = None
    """Runs of each task and method; by default about as many as in the paper."""


def main(arguments: Sequence[str], console: Console) -> int:
    """Print the table."""
    command = tyro.cli(ExperimentsCommand, args=list(arguments), prog="curious experiments")
    table = Table(box=None, pad_edge=False)
    for name in ("experiment", "in the paper", "runs", "updates"):
        table.add_column(
            name, no_wrap=True, justify="right" if name in ("runs", "updates") else "left"
        )
    known = experiments()
    for experiment in known.values():
        takes = cost([experiment], command.scale, command.seeds)
        told = (str(takes.runs), takes.short_updates) if takes.runs else ("–", "–")
        table.add_row(experiment.name, experiment.where, *told)
    console.print(table)
    console.print(
        f"All at {command.scale} scale: {cost(known.values(), command.scale, command.seeds)}; "
        "runs that several need are made once. `curious sweep EXPERIMENT` runs one.",
        highlight=False,
    )
    return 0
