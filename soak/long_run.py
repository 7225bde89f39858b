"""How a long run held its speed while its buffer outgrew the memory it was allowed.

    python soak/long_run.py RUN --memory 2.5 --out results/long-run

RUN is the folder of a run that was allowed `--memory` GiB. Written are long-run.json (steps a
second for every five minutes, and how much was stored by then) and long-run.svg.

    python soak/long_run.py --markdown results/long-run/long-run.json    prints it for the docs
"""

import argparse
from dataclasses import asdict, dataclass
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from curious_replay.analysis.chart import COLORS, FAINT, STYLE, Chart
from curious_replay.analysis.load import Run, load_runs
from curious_replay.run.record.files import read_json, write_json
from curious_replay.run.settings.config import load_config
from curious_replay.run.worlds.environments import inspect_env

MINUTES = 5
GIB = 2**30


@dataclass(frozen=True)
class LongRun:
    """Speed of a run in intervals of `MINUTES` minutes; the last may be shorter."""

    name: str
    envs: int
    memory: float
    """GiB that the run was allowed, with all its processes and what the system caches for it."""
    steps_per_second: list[float]
    stored: list[float]
    """GiB of steps in the buffer at the end of each interval."""

    @property
    def since_full(self) -> list[float]:
        """Speeds after the buffer became larger than memory."""
        return [
            speed
            for speed, before in zip(self.steps_per_second, [0.0, *self.stored], strict=False)
            if before > self.memory
        ]

    def markdown(self) -> str:
        """A table and what it says in a sentence."""
        after, before = self.since_full, self.steps_per_second[: -len(self.since_full)]
        rows = [
            f"| {MINUTES * index} | {speed:.0f} | {stored:.1f} |"
            for index, (speed, stored) in enumerate(
                zip(self.steps_per_second, self.stored, strict=True), 1
            )
        ]
        return "\n".join([
            f"{self.envs} environments, {self.memory:g} GiB of memory, {self.stored[-1]:.1f} GiB "
            f"of steps at the end: {np.mean(before):.0f} steps a second until the buffer was "
            f"larger than memory, {np.mean(after):.0f} from then on.",
            "",
            "| minute | steps a second | GiB stored |",
            "| --- | --- | --- |",
            *rows,
        ])  # fmt: skip

    def chart(self) -> Chart:
        """Speed over time, and when the buffer became larger than memory."""
        with mpl.rc_context(STYLE):
            figure = Figure(figsize=(7, 3), layout="constrained")
            axes = figure.subplots()
            ends = MINUTES * np.arange(1, 1 + len(self.stored))
            axes.stairs(self.steps_per_second, [0, *ends], color=COLORS["curious"], baseline=None)
            axes.set(xlabel="minutes", ylabel="steps a second", ylim=(0, None), xlim=(0, ends[-1]))
            full = np.interp(self.memory, [0, *self.stored], [0, *ends])
            axes.axvline(full, color=FAINT, linestyle=":")
            axes.annotate(
                f" buffer larger than memory ({self.memory:g} GiB)", (full, 0), (0, 6),
                textcoords="offset points", color=FAINT,
            )  # fmt: skip
        return Chart(figure, f"{self.name}: speed of a run with {self.envs} environments")


def measure(run: Run, memory: float) -> LongRun:
    """How fast a run was, and how much it stored, from its speed.jsonl and its settings."""
    steps, speeds = run.speed["step"], run.speed["steps_per_second"]
    done = np.diff(steps, prepend=0)
    minutes = np.cumsum(done / speeds) / 60
    # Where it was at the end of each interval, between the two lines that are nearest.
    ends = np.arange(MINUTES, minutes[-1] + 1e-9, MINUTES)
    at = np.interp(ends, [0, *minutes], [0, *steps])
    config = load_config(run.folder)
    step_bytes = inspect_env(config.choice.env, config.env).step_bytes
    long = LongRun(
        name=f"{config.choice.env}, {config.choice.agent}",
        envs=config.env.num_envs,
        memory=memory,
        steps_per_second=(np.diff(at, prepend=0) / (60 * MINUTES)).tolist(),
        stored=(np.minimum(at, config.replay.capacity) * step_bytes / GIB).tolist(),
    )
    if not long.since_full or long.stored[0] > memory:
        raise ValueError(
            f"--memory must be between what the run stored in its first {MINUTES} minutes and what "
            f"it stored before its last, {long.stored} GiB at the end of each, got {memory}"
        )
    return long


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("run", type=Path, nargs="?", help="folder of the run")
    parser.add_argument("--memory", type=float, help="GiB that it was allowed")
    parser.add_argument("--out", type=Path, default=Path("out/long-run"))
    parser.add_argument("--markdown", type=Path, help="print what is in this long-run.json")
    options = parser.parse_args()
    if options.markdown:
        print(LongRun(**read_json(options.markdown)).markdown())
        return
    if not (options.run and options.memory):
        parser.error("the folder of a run and --memory are needed")
    (run,) = load_runs([options.run]).runs
    try:
        long = measure(run, options.memory)
    except ValueError as error:
        parser.error(str(error))
    options.out.mkdir(parents=True, exist_ok=True)
    write_json(options.out / "long-run.json", asdict(long))
    long.chart().save(options.out / "long-run", ("svg",))
    print(long.markdown())


if __name__ == "__main__":
    main()
