"""Which launcher, by name. Ray and Slurm are extras that are imported when they are asked for."""

import math
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from curious_replay.errors import UsageError
from curious_replay.extras import require
from curious_replay.sweep.work import Launcher

SLURM = ("sbatch", "srun", "sacct", "scancel")
"""Commands of Slurm that submitit calls where the sweep is started."""


@dataclass(frozen=True)
class RayOptions:
    """The Ray cluster."""

    address: str = "auto"
    """Address of a running cluster; auto: the one this machine belongs to, or else a local one."""
    gpus: float = 0.0
    """Graphics cards of each run; a part of one lets several runs share it."""

    def __post_init__(self) -> None:
        if not 0 <= self.gpus < math.inf:
            raise UsageError(f"--ray.gpus must be at least 0, got {self.gpus}")


@dataclass(frozen=True)
class SlurmOptions:
    """Slurm jobs."""

    partition: str | None = None
    """Where to queue; by default where the cluster decides."""
    minutes: int = 1440
    """Time limit of a job. A run that needs longer saves and is queued again."""
    gpus: int = 1
    """Graphics cards of each run; 0: none."""
    at_once: int = 64
    """Jobs of an array that may run at the same time; the branches of each trunk are an array."""

    def __post_init__(self) -> None:
        for name, least in (("minutes", 1), ("gpus", 0), ("at_once", 1)):
            if getattr(self, name) < least:
                option = name.replace("_", "-")
                raise UsageError(
                    f"--slurm.{option} must be at least {least}, got {getattr(self, name)}"
                )


@contextmanager
def launcher(
    name: str, at_once: int, threads: int, ray: RayOptions, slurm: SlurmOptions
) -> Iterator[Launcher]:
    """Yield the launcher that was asked for; UsageError if what it needs is not installed."""
    if name == "ray":
        require("--launcher ray", "ray")
        from curious_replay.sweep.on_ray import RayLauncher  # noqa: PLC0415

        with RayLauncher(ray.address, threads, ray.gpus) as chosen:
            yield chosen
    elif name == "slurm":
        require("--launcher slurm", "submitit")
        _need_slurm()
        from curious_replay.sweep.on_slurm import SlurmLauncher  # noqa: PLC0415

        yield SlurmLauncher(threads, slurm)
    else:
        from curious_replay.sweep.local import LocalLauncher  # noqa: PLC0415

        cards = _cards()
        fit = len(cards) or max(len(os.sched_getaffinity(0)) // threads, 1)
        here = LocalLauncher(at_once or fit, cards)
        try:
            yield here
        finally:
            here.stop()  # whatever happened: nobody would know of tasks that go on


def _need_slurm() -> None:
    missing = [command for command in SLURM if shutil.which(command) is None]
    if missing:
        raise UsageError(
            f"--launcher slurm: there is no command {', '.join(missing)} here; start the sweep on "
            "a machine of a Slurm cluster from which jobs are submitted, or use --launcher local"
        )


def _cards() -> list[str]:
    """Return the names of the graphics cards that PyTorch can use here."""
    import torch  # noqa: PLC0415

    count = torch.cuda.device_count()
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible else map(str, range(count))
    return [name.strip() for name in names][:count]  # CUDA does not read on after a wrong name
