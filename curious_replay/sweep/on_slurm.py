"""Tasks as Slurm jobs, through submitit; all machines share the folder of the runs.

The jobs of a sweep are one array. A job that reaches its time limit, or has to make room, saves and
is queued again.
"""

from typing import Any

from submitit import AutoExecutor, Job
from submitit.helpers import DelayedSubmission

from curious_replay.sweep.launchers import SlurmOptions
from curious_replay.sweep.task import Task
from curious_replay.sweep.work import Ended, run_task, told


class _Resumable:
    """`run_task`, which submitit may interrupt and queue again."""

    def __call__(self, task: Task) -> int:
        return run_task(task)

    def checkpoint(self, task: Task) -> DelayedSubmission:
        """What to queue instead of a job whose time is over: the same, which resumes."""
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
                found.append(Ended(name, 1, told(error)))
        return found

    def stop(self) -> None:
        """See `Launcher`. Jobs are ended by Slurm, which sends SIGTERM: they save and stop."""
        for job in self._jobs.values():
            job.cancel(check=False)  # one that has just ended is no error

    def _executor(self, task: Task) -> AutoExecutor:
        executor = AutoExecutor(folder=task.folder.parent / "slurm", cluster="slurm")
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
