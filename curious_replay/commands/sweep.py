"""`curious sweep EXPERIMENT`: all runs of a table or figure, and the page that comes of them."""

import shlex
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tyro
from rich.console import Console

from curious_replay import plugins
from curious_replay.commands.outputs import check_folder
from curious_replay.errors import UsageError
from curious_replay.experiments import catalogue, page
from curious_replay.experiments.experiment import Experiment
from curious_replay.experiments.hours import Hours, short
from curious_replay.experiments.jobs import Job, jobs, with_trunks
from curious_replay.experiments.miniatures import together
from curious_replay.run.loop.stop import Stop
from curious_replay.run.settings.config import Scale
from curious_replay.run.settings.presets import Settings
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
    """Name (`curious experiments` lists them), a Python file of your own that defines one, or
    `miniatures` for all of those."""
    scale: Scale = "mini"
    """paper (needs graphics cards), mini (minutes to an hour on a CPU core) or debug (seconds)."""
    seeds: int | None = None
    """Runs of each task and method; by default about as many as in the paper, 1 at debug scale."""
    first_seed: int | None = None
    """Seed of the first of them: to add runs to those that were made elsewhere; by default 0, or
    the one that the experiment is judged from."""
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
    quick: bool = False
    """Of the miniatures: half an hour, with two kinds of replay and three seeds."""
    dry_run: bool = False
    """Only say what would be run."""
    ray: RayOptions = field(default_factory=RayOptions)
    slurm: SlurmOptions = field(default_factory=SlurmOptions)

    def __post_init__(self) -> None:
        for name, least in (("at_once", 0), ("threads", 1), ("retries", 0)):
            if getattr(self, name) < least:
                option = name.replace("_", "-")
                raise UsageError(f"--{option} must be at least {least}, got {getattr(self, name)}")

    @property
    def whole(self) -> str:
        """The command that makes all runs of the page, wherever and in however many turns."""
        words = ["curious", "sweep", self.experiment, "--scale", self.scale]
        words += ["--quick"] if self.quick else []
        words += [] if self.seeds is None else ["--seeds", str(self.seeds)]
        words += ["--first-seed", str(self.first_seed)] if self.first_seed is not None else []
        words += ["--threads", str(self.threads)] if self.threads != 1 else []
        words += [] if self.images is None else ["--images", str(self.images)]
        words += ["--clips", *self.clips] if self.clips else []
        return shlex.join([*words, *plugins.given_options()])

    @property
    def backgrounds(self) -> Settings:
        """What is set of tasks in front of pictures."""
        if self.images is None:
            if self.clips:
                raise UsageError("--clips names subfolders of --images, which must be given")
            return {}
        if not self.images.is_dir():
            raise UsageError(f"--images must be a folder of pictures, got {self.images}")
        return {"env.images": str(self.images.resolve()), "env.clips": self.clips or None}


def main(arguments: Sequence[str], console: Console) -> int:
    """Run what is missing and write the page; 1 if a run failed, 128 + signal if stopped."""
    command = tyro.cli(SweepCommand, args=list(arguments), prog="curious sweep")
    chosen = catalogue.several(command.experiment, command.quick)
    wanted = [(experiment, _jobs(command, experiment)) for experiment in chosen]
    runs = command.runs.resolve()
    all_jobs = [job for _, its_jobs in wanted for job in its_jobs]
    sweep = Sweep.of(_task(job, runs) for job in _chosen(all_jobs, command.only))
    if command.dry_run:
        for entry in sweep.entries.values():
            console.print(f"{entry.status:<9} {entry.task.name}", highlight=False, soft_wrap=True)
        return 0
    for entry in sweep.of_status("waiting"):
        plugins.confirm(entry.task.folder)
    name = chosen[0].name if len(chosen) == 1 else command.experiment
    out = command.out or Path("out") / f"{name}-{command.scale}"
    check_folder("--out", out)
    trunks = {entry.task.trunk.name for entry in sweep.entries.values() if entry.task.trunk}
    trunks &= sweep.entries.keys()
    count = f"{len(sweep.entries)} runs{f' ({len(trunks)} of them trunks)' if trunks else ''}"
    title = f"{name} at {command.scale} scale: {count} in {command.runs}"
    if command.scale == "paper" and command.launcher == "local" and sweep.of_status("waiting"):
        _warn_of_time(all_jobs, sweep, console)
    with Stop() as stop:
        with SweepTable(console, sweep, title) as table:
            if sweep.of_status("waiting"):
                with launcher(
                    command.launcher, command.at_once, command.threads, command.ray, command.slurm
                ) as chosen_launcher:
                    sweep.run(chosen_launcher, command.retries, table.show, lambda: bool(stop))
        if sweep.stopped and stop.signal is not None:
            console.print("stopped; the same command goes on where it was", highlight=False)
            return 128 + stop.signal
    _write(command, wanted, runs, out, console)
    failed = sweep.of_status("failed")
    for entry in failed:
        task = entry.task
        how = f"failed {entry.attempts} times" if entry.attempts else "not begun"
        log = task.log if entry.attempts or task.trunk is None else task.trunk.log
        said = f"{how}: {task.name}: {entry.reason}; see {log}"
        console.print(said, highlight=False, soft_wrap=True, markup=False)
    return 1 if failed else 0


def _jobs(command: SweepCommand, experiment: Experiment) -> list[Job]:
    return jobs(
        experiment,
        command.scale,
        command.seeds,
        command.threads,
        command.first_seed,
        command.backgrounds,
    )


def _chosen(wanted: Sequence[Job], only: Sequence[str]) -> list[Job]:
    """Return the runs of these methods, or all."""
    names = {job.method.name for job in wanted}
    for name in only:
        if name not in names:
            raise UsageError(
                f"--only names methods of the experiment, {sorted(names)}, got {name!r}"
            )
    return [job for job in wanted if not only or job.method.name in only]


def _task(job: Job, runs: Path) -> Task:
    trunk = None if job.trunk is None else _task(job.trunk, runs)
    return Task(job.name, job.config.to_json(), job.folder(runs), trunk, plugins.wanted())


def _warn_of_time(wanted: Sequence[Job], sweep: Sweep, console: Console) -> None:
    """Say how long runs of published size would take without a graphics card."""
    from curious_replay.run.saved_run import pick_device  # noqa: PLC0415  # PyTorch

    if pick_device("auto") == "cpu":
        left = {entry.task.name for entry in sweep.of_status("waiting")}
        hours = Hours()(job for job in with_trunks(wanted) if job.name in left)
        console.print(
            "warning: --scale paper is meant for graphics cards; here the updates of these runs "
            f"take about {short(hours)} hours of one core",
            highlight=False,
            soft_wrap=True,
        )


def _write(
    command: SweepCommand,
    wanted: Sequence[tuple[Experiment, Sequence[Job]]],
    runs: Path,
    out: Path,
    console: Console,
) -> None:
    """Measure what is there and write it down; several experiments have a page together too."""
    made = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        for experiment, its_jobs in wanted:
            place = out if len(wanted) == 1 else out / experiment.name
            made.append(page.write(experiment, command.scale, its_jobs, runs, place, command.whole))
        if len(made) > 1:
            experiments = [experiment for experiment, _ in wanted]
            together.write([*zip(experiments, made, strict=True)], out)
    for warning in caught:
        console.print(f"warning: {warning.message}", soft_wrap=True, highlight=False, markup=False)
    for result in made:
        console.print(result.verdict, highlight=False, markup=False)
    console.print(f"page: {out / 'report.html'}", soft_wrap=True, highlight=False)
