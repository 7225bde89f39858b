"""Hours that experiments take here, from a short measurement of each kind of update."""

import json
import math
import time
from collections.abc import Iterable

from curious_replay.experiments.jobs import Job
from curious_replay.run.settings.config import Config
from curious_replay.run.settings.config_io import to_json


class Hours:
    """Measures when it is first asked about a kind of update, and remembers."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}

    def __call__(self, wanted: Iterable[Job]) -> float:
        """Return the hours of all updates of these runs: of one core, or of one graphics card."""
        return sum(job.updates * self._of(job.config) for job in wanted) / 3600

    def _of(self, config: Config) -> float:
        """Return the seconds of an update, which depend on the agent and the size of its batch."""
        train, agent = config.train, config.choice.agent
        sizes = (train.batch_size, train.batch_length, config.env.image_size)
        kind = json.dumps([agent, to_json(config.agent), *sizes])
        if kind not in self._seconds:
            self._seconds[kind] = _measure(config)
        return self._seconds[kind]


def short(hours: float) -> str:
    """Return hours in few digits: 0.4, 12, 3,400; a dash if they are not known."""
    if math.isnan(hours):
        return "–"
    return f"{hours:.1f}" if hours < 10 else f"{hours:,.0f}"


def _measure(config: Config) -> float:
    # PyTorch: not to list what there is.
    from curious_replay.run.estimate import likely_spaces, seconds_per_update  # noqa: PLC0415
    from curious_replay.run.saved_run import pick_device  # noqa: PLC0415

    # On a CPU, what else the machine does meanwhile does not count.
    on_cpu = pick_device(config.train.device) == "cpu"
    clock = time.process_time if on_cpu else time.perf_counter
    return seconds_per_update(config, likely_spaces(config), clock)
