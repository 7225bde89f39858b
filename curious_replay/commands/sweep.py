"""`curious sweep EXPERIMENT`: all runs of a table or figure, and the page that comes of them."""

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Literal

import tyro
from rich.console import Console

from curious_replay.experiments import catalogue, page
from curious_replay.experiments.experiment import Experiment, Job, jobs
from curious_replay.experiments.standard import Settings
from curious_replay.run.config import Scale
from curious_replay.run.stop import Stop
from curious_replay.sweep.launchers import RayOptions, SlurmOptions, launcher
from curious_replay.sweep.sweep import Sweep
from curious_replay.sweep.table import SweepTable
from curious_replay.sweep.task import Task


@dataclass(frozen=True)
class SweepCommand:
    """Run an experiment: what is there already is not run again, what was interrupted goes on.

    At the end there is a page with the paper's numbers beside ours.
    """

    experiment: tyro.conf.Positional[str]
    """Name (`curious experiments` lists them), or a Python file of your own that defines one."""
    scale: Scale = "mini"
    """paper (needs graphics cards), mini (minutes to an hour on a CPU core) or debug (seconds)."""
    seeds: int | None = None
    """Runs of each task and method; by default about as many as in the paper, 1 at debug scale."""
    first_seed: int = 0
    """Seed of the first of them: to add runs to those that were made elsewhere."""
    only: tuple[str, ...] = ()
    """Methods to run now, by their names in the tables; the page has all runs that are complete."""
    images: Path | None = None
    """Folder of background pictures, as `--env.images` of `curious train`."""
    clips: tuple[str, ...] = ()
    """Which of its subfolders to use, in this order; the paper: boat bmx-bumps, of DAVIS."""
    runs: Path = Path("runs")
    """Folder of the run folders, which experiments share."""
    out: Path | None = None
    """Folder for the page, results.json and figures; by default out/EXPERIMENT-SCALE."""
    launcher: Literal["local", "ray", "slurm"] = "local"
    """Where runs happen: on this machine, on a Ray cluster, or as Slurm jobs."""
    at_once: int = 0
    """Runs side by side on this machine; 0: as many as cores or graphics cards allow."""
    threads: int = 1
    """Threads of a run on the CPU."""
    retries: int = 2
    """How often a run that failed is tried again, from its last checkpoint."""
    dry_run: bool = False
    """Only say what would be run."""
    ray: RayOptions = field(default_factory=RayOptions)
    slurm: SlurmOptions = field(default_factory=SlurmOptions)

    def __post_init__(self) -> None:
        for name, least in (("at_once", 0), ("threads", 1), ("retries", 0)):
            if getattr(self, name) < least:
                option = name.replace("_", "-")
                raise ValueError(f"--{option} must be at least {least}, got {getattr(self, name)}")

    @property
    def whole(self) -> str:
        """The command that makes all runs of the page, wherever and in however many turns."""
        words = ["curious", "sweep", self.experiment, "--scale", self.scale]
        words += [] if self.seeds is None else ["--seeds", str(self.seeds)]
        words += ["--first-seed", str(self.first_seed)] if self.first_seed else []
        words += ["--threads", str(self.threads)] if self.threads != 1 else []
        words += [] if self.images is None else ["--images", str(self.images)]
        words += ["--clips", *self.clips] if self.clips else []
        return shlex.join(words)

    @property
    def backgrounds(self) -> Settings:
        """What is set of tasks in front of pictures."""
        if self.images is None:
            if self.clips:
                raise ValueError("--clips names subfolders of --images, which must be given")
            return {}
        if not self.images.is_dir():
            raise ValueError(f"--images must be a folder of pictures, got {self.images}")
        return {"env.images": str(self.images.resolve()), "env.clips": self.clips or None}


def main(arguments: Sequence[str], console: Console) -> int:
    """Run what is missing and write the page; 1 if a run failed, 128 + signal if stopped."""
    command = tyro.cli(SweepCommand, args=list(arguments), prog="curious sweep")
    experiment = catalogue.find(command.experiment)
    wanted = jobs(
        experiment,
        command.scale,
        command.seeds,
        command.threads,
        command.first_seed,
        command.backgrounds,
    )
    runs = command.runs.resolve()
    tasks = [
        Task(job.name, job.config.to_json(), job.folder(runs))
        for job in _chosen(wanted, command.only)
    ]
    sweep = Sweep.of(tasks)
    if command.dry_run:
        for entry in sweep.entries.values():
            console.print(f"{entry.status:<9} {entry.task.name}", highlight=False, soft_wrap=True)
        return 0
    out = command.out or Path("out") / f"{experiment.name}-{command.scale}"
    _check_writable(out)
    title = f"{experiment.name} at {command.scale} scale: {len(tasks)} runs in {command.runs}"
    with Stop() as stop:
        with SweepTable(console, sweep, title) as table:
            if sweep.of_status("waiting"):
                with launcher(
                    command.launcher, command.at_once, command.threads, command.ray, command.slurm
                ) as chosen:
                    sweep.run(chosen, command.retries, table.show, lambda: bool(stop))
        if sweep.stopped and stop.signal is not None:
            console.print("stopped; the same command goes on where it was", highlight=False)
            return 128 + stop.signal
    _write(command, experiment, wanted, runs, out, console)
    failed = sweep.of_status("failed")
    for entry in failed:
        task = entry.task
        said = f"failed {entry.attempts} times: {task.name}: {entry.reason}; see {task.log}"
        console.print(said, highlight=False, soft_wrap=True, markup=False)
    return 1 if failed else 0


def _chosen(wanted: Sequence[Job], only: Sequence[str]) -> list[Job]:
    """The runs of these methods, or all."""
    names = {job.method.name for job in wanted}
    for name in only:
        if name not in names:
            raise ValueError(
                f"--only names methods of the experiment, {sorted(names)}, got {name!r}"
            )
    return [job for job in wanted if not only or job.method.name in only]


def _check_writable(out: Path) -> None:
    """Before days of computing: the folder for the page can be made, or is there and writable."""
    there = next(place for place in (out, *out.parents) if place.exists())
    try:
        with TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise ValueError(f"--out: nothing can be written to {out}: {error.strerror}") from error


def _write(
    command: SweepCommand,
    experiment: Experiment,
    wanted: Sequence[Job],
    runs: Path,
    out: Path,
    console: Console,
) -> None:
    """Measure what is there and write it down."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        made = page.write(experiment, command.scale, wanted, runs, out, command.whole)
    for warning in caught:
        console.print(f"warning: {warning.message}", soft_wrap=True, highlight=False, markup=False)
    console.print(made.verdict, highlight=False, markup=False)
    console.print(f"page: {out / 'report.html'}", soft_wrap=True, highlight=False)
