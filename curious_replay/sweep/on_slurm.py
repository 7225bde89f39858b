"""Tasks as Slurm jobs, through submitit; all machines share the folder of the runs.

The jobs of a sweep are one array. A job that reaches its time limit, or has to make room, saves and
is queued again.
"""

import signal
from types import FrameType
from typing import Any

from submitit import AutoExecutor, Job, JobEnvironment
from submitit.helpers import DelayedSubmission

from curious_replay.run.loop.stop import repeats_ignored
from curious_replay.sweep.launchers import SlurmOptions
from curious_replay.sweep.task import Task
from curious_replay.sweep.work import Ended, describe, run_task

TIME_LIMITS = 1000
"""How many a job may pass; there is a bound for those too short for a run to get anywhere."""


class _Resumable:
    """`run_task`, which saves when submitit is told that the time is up, and is queued again."""

    def __call__(self, task: Task) -> int:
        number = signal.Signals[f"SIG{JobEnvironment.USR_SIG}"]
        # Submitit's handler, which queues the job again and exits, wherever the run may be.
        requeue: Any = signal.getsignal(number)
        nobody = signal.getsignal(signal.SIGTERM)
        heard = False

        def save_first(number: int, frame: FrameType | None) -> None:
            nonlocal heard
            if signal.getsignal(signal.SIGTERM) is nobody:
                requeue(number, frame)  # no run has begun to listen: there is nothing to save
            else:
                heard = True
                signal.raise_signal(signal.SIGTERM)

        signal.signal(number, save_first)
        try:
            with repeats_ignored():
                code = run_task(task)
        finally:
            signal.signal(number, requeue)
        if heard and code >= 128:  # it was saved and is not complete
            requeue(number, None)
        return code

    def checkpoint(self, task: Task) -> DelayedSubmission:
        """Return what to queue instead of a job whose time is over: the same, which resumes."""
        return DelayedSubmission(self, task)


class SlurmLauncher:
    """Queues tasks."""

    def __init__(self, threads: int, options: SlurmOptions) -> None:
        self._threads, self._options = threads, options
        self._jobs: dict[str, Job[int]] = {}

    def submit(self, tasks: list[Task]) -> None:
        """See `Launcher`."""
        if not tasks:
            return
        executor = self._executor(tasks[0])
        with executor.batch():
            jobs = [executor.submit(_Resumable(), task) for task in tasks]
        self._jobs |= {task.name: job for task, job in zip(tasks, jobs, strict=True)}

    def running(self) -> set[str]:
        """See `Launcher`."""
        return {name for name, job in self._jobs.items() if job.state == "RUNNING"}

    def ended(self) -> list[Ended]:
        """See `Launcher`."""
        found = []
        for name, job in list(self._jobs.items()):
            if not job.done():
                continue
            del self._jobs[name]
            try:
                found.append(Ended(name, job.result()))
            except Exception as error:  # whatever submitit makes of a job that died
                found.append(Ended(name, 1, describe(error)))
        return found

    def stop(self) -> None:
        """See `Launcher`. Jobs are ended by Slurm, which sends SIGTERM: they save and stop."""
        for job in self._jobs.values():
            job.cancel(check=False)  # one that has just ended is no error

    def _executor(self, task: Task) -> AutoExecutor:
        executor = AutoExecutor(
            folder=task.folder.parent / "slurm",
            cluster="slurm",
            slurm_max_num_timeout=TIME_LIMITS,
        )
        options: dict[str, Any] = {
            "name": "curious-sweep",
            "timeout_min": self._options.minutes,
            "cpus_per_task": self._threads,
            "gpus_per_node": self._options.gpus,
            "slurm_array_parallelism": self._options.at_once,
        }
        if self._options.partition is not None:
            options["slurm_partition"] = self._options.partition
        executor.update_parameters(**options)
        return executor
