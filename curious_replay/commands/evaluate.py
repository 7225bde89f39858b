"""`curious eval RUN`: play episodes with the agent of a run."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.table import Table

from curious_replay import plugins
from curious_replay.commands.outputs import check_file
from curious_replay.run.saved_run import evaluate, load_agent
from curious_replay.run.settings.config import Device


@dataclass(frozen=True)
class EvalCommand:
    """Play episodes with the agent of a run as it was last saved."""

    run: tyro.conf.Positional[Path]
    """Run folder."""
    episodes: int = 10
    """How many."""
    video: Path | None = None
    """Video of the first episode, such as out.mp4: what the agent sees, or the world renders."""
    phase: str | None = None
    """Phase to play in; by default the one that the run was in."""
    episode_frames: int | None = None
    """Frames of an episode, where that is a setting; by default as in training."""
    seed: int = 0
    """Seed of the episodes."""
    device: Device = "auto"
    """Where the agent computes."""


def main(arguments: Sequence[str], console: Console) -> int:
    """Evaluate and print a table."""
    command = tyro.cli(EvalCommand, args=list(arguments), prog="curious eval")
    if command.video is not None:
        check_file("--video", command.video)
    plugins.confirm(command.run)
    run = load_agent(command.run, command.device, note=console.print)
    played = evaluate(
        run,
        command.episodes,
        seed=command.seed,
        phase=command.phase,
        episode_frames=command.episode_frames,
        video=command.video,
    )
    table = Table(box=None, pad_edge=False)
    for name in ("episode", "phase", "length", "return"):
        table.add_column(name, justify="left" if name == "phase" else "right")
    for number, episode in enumerate(played):
        values = episode.values
        result = (str(values["length"]), f"{values['return']:.2f}")
        table.add_row(str(number), values["phase"], *result)
    console.print(table)
    returns = [episode.values["return"] for episode in played]
    spread = statistics.stdev(returns) if len(returns) > 1 else 0.0
    console.print(
        f"{run.config.choice.env} at step {run.step:,}: return {statistics.mean(returns):.2f} "
        f"(standard deviation {spread:.2f}) over {len(returns)} episodes",
        highlight=False,
        soft_wrap=True,
    )
    return 0
