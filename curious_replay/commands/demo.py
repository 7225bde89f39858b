"""`curious demo`: see within minutes what curious replay does."""

import os
import tempfile
import time
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

from curious_replay.commands.outputs import check_file
from curious_replay.commands.renamed import renamed
from curious_replay.demo import verdict
from curious_replay.demo.branches import Trial
from curious_replay.demo.page import make_page
from curious_replay.demo.plan import QUICK, Plan
from curious_replay.demo.trials import run_trials
from curious_replay.demo.video import TESTS_PER_SECOND, video
from curious_replay.envs.drawing.video import write_gif
from curious_replay.errors import UsageError


@dataclass(frozen=True)
class DemoCommand:
    """A ball appears in a world that models know: does curious replay learn it sooner?

    Trains small world models on this machine's processor, in minutes, and writes one page.
    """

    out: Path = Path("out/demo.html")
    """The page to write."""
    video: Path | None = None
    """A moving picture to write too, as .gif: predictions and errors, update by update."""
    seeds: int = 4
    """How many seeds to run; those for which five minutes are not enough are left out."""
    seed: int = 0
    """The first of them."""
    quick: bool = False
    """Only try whether everything works, in seconds: nothing is learned."""
    open: bool = True
    """Open the page where there is a desktop."""

    def __post_init__(self) -> None:
        if self.video is not None and self.video.suffix.lower() != ".gif":
            raise UsageError(f"--video is written as .gif, got {self.video.name!r}")
        if self.seeds < 1:
            raise UsageError(f"--seeds must be at least 1, got {self.seeds}")
        if self.seed < 0:
            raise UsageError(f"--seed must be at least 0, got {self.seed}")


def main(arguments: Sequence[str], console: Console) -> int:
    """Train, write the page, say where it is."""
    given = renamed(arguments, {"--film": "--video"})
    command = tyro.cli(DemoCommand, args=given, prog="curious demo")
    plan = QUICK if command.quick else Plan()
    seeds = range(command.seed, command.seed + command.seeds)
    began = time.monotonic()
    check_file("--out", command.out)
    if command.video is not None:
        check_file("--video", command.video)
    command.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as replay:
        with _progress(console) as progress:
            task = progress.add_task("training", total=len(seeds) * plan.all_updates)
            trials = run_trials(
                seeds,
                plan,
                Path(replay),
                lambda updates: progress.update(task, completed=updates),
            )
        html = make_page(trials, plan, Path(replay), len(seeds), time.monotonic() - began)
    command.out.write_text(html, encoding="utf-8")
    _print_result(console, trials, plan)
    if command.video is not None:
        write_gif(video(trials, plan), command.video, zoom=1, pictures_per_second=TESTS_PER_SECOND)
        console.print(f"video: {command.video.resolve()}", soft_wrap=True, highlight=False)
    console.print(f"page: {command.out.resolve()}", soft_wrap=True, highlight=False)
    if command.open and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        webbrowser.open(command.out.resolve().as_uri())
    return 0


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f} of {task.total:.0f} updates"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    )


def _print_result(console: Console, trials: Sequence[Trial], plan: Plan) -> None:
    found = verdict.table(trials, plan)
    shown = Table(title="updates until the ball is modelled", title_justify="left")
    for number, name in enumerate(("", "uniform replay", "curious replay", "sooner")):
        shown.add_column(name, justify="left" if number in (0, 3) else "right")
    for row in found.rows:
        shown.add_row(*(str(row[i]) for i in (0, 1, 2, -1)))
    console.print(shown)
    for sentence in verdict.sentences(trials, plan):
        console.print(sentence, highlight=False)
