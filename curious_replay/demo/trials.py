"""Seeds side by side: as many processes as cores, and no seed that would not be done in time."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from itertools import count
from pathlib import Path
from typing import Any

import torch

from curious_replay.demo.branches import Trial, run_trial
from curious_replay.demo.plan import Plan

SECONDS = 270.0
"""No seed is begun that would not be done by then, going by those before it."""
REFRESH_SECONDS = 0.2
Job = tuple[int, Plan, Path | None]
_updates: Any = None  # a number that all processes share


class Deadline:
    """Says whether there is time for one more seed."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds
        self._longest = 0.0

    def finish(self, began: float) -> None:
        """Learn how long a seed took that began at a time of `time.monotonic`."""
        self._longest = max(self._longest, time.monotonic() - began)

    @property
    def leaves_time(self) -> bool:
        """Whether a seed that takes as long as the longest so far would be done in time."""
        return time.monotonic() + self._longest <= self._end


def run_trials(
    seeds: Sequence[int],
    plan: Plan,
    folder: Path,
    show: Callable[[int], None],
    *,
    processes: int | None = None,
    seconds: float = SECONDS,
) -> list[Trial]:
    """Run seeds, in order; those are left out for which there is no time any more.

    `show` is told how many updates are done, of all seeds together. The first seed, which is always
    run, leaves the replay of both branches in `folder`.
    """
    jobs = [(seed, plan, folder if number == 0 else None) for number, seed in enumerate(seeds)]
    deadline = Deadline(seconds)
    wanted = min(len(seeds), processes or len(os.sched_getaffinity(0)))
    if wanted == 1:
        return _one_by_one(jobs, deadline, show)
    # Threads would wait for each other: with networks this small, Python is half the work.
    context = multiprocessing.get_context("spawn")
    updates = context.Value("q", 0)
    with ProcessPoolExecutor(wanted, context, _prepare, (updates,)) as pool:
        try:
            return _side_by_side(pool, wanted, jobs, deadline, lambda: show(updates.value))
        except BaseException:
            for process in multiprocessing.active_children():
                process.kill()  # nobody waits for what they would come to
            raise


def _one_by_one(jobs: list[Job], deadline: Deadline, show: Callable[[int], None]) -> list[Trial]:
    trials: list[Trial] = []
    updates = count(1)
    for job in jobs:
        if deadline.leaves_time or not trials:
            began = time.monotonic()
            trials.append(run_trial(*job, lambda: show(next(updates))))
            deadline.finish(began)
    return trials


def _side_by_side(
    pool: ProcessPoolExecutor,
    wanted: int,
    jobs: list[Job],
    deadline: Deadline,
    show: Callable[[], None],
) -> list[Trial]:
    trials: list[Trial] = []
    running: dict[Future[Trial], float] = {}
    waiting = iter(jobs)
    while True:
        while len(running) < wanted and (deadline.leaves_time or not (trials or running)):
            job = next(waiting, None)
            if job is None:
                break
            running[_submit(pool, job)] = time.monotonic()
        if not running:
            return sorted(trials, key=lambda trial: trial.seed)
        done, _ = wait(running, REFRESH_SECONDS, FIRST_COMPLETED)
        for each in done:
            deadline.finish(running.pop(each))
            trials.append(each.result())
        show()


def _submit(pool: ProcessPoolExecutor, job: Job) -> Future[Trial]:
    """Submit a job; processes that are begun for it never hear Ctrl-C, which is for this one.

    Here it counts when they are begun: halfway, they would complain.
    """
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: heard.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which they inherit
    try:
        submitted = pool.submit(_run_here, *job)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, before)
    if heard:
        raise KeyboardInterrupt
    return submitted


def _prepare(updates: Any) -> None:
    """Prepare a process before it does anything else."""
    global _updates  # noqa: PLW0603  # a pool gives its processes things no other way
    _updates = updates
    torch.set_num_threads(1)


def _run_here(seed: int, plan: Plan, folder: Path | None) -> Trial:
    def tick() -> None:
        with _updates.get_lock():
            _updates.value += 1

    return run_trial(seed, plan, folder, tick)
