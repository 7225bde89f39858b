"""Ray, where a sweep starts it by itself, serves no page."""

import pytest
import ray

from curious_replay.sweep.on_ray import RayLauncher


@pytest.mark.parametrize("address", ["auto", "local"])
def test_what_a_sweep_starts_has_no_dashboard(address, monkeypatch):
    started = []

    def init(**options):
        if options["address"] == "auto":
            raise ConnectionError("this machine belongs to no cluster")
        started.append(options)

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with RayLauncher(address, threads=1, gpus=0):
        pass
    (options,) = started
    assert options["include_dashboard"] is False
