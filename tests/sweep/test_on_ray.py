"""What a sweep asks of Ray, without Ray: that it serves no page, and that tasks end."""

from types import SimpleNamespace

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


def test_a_task_that_does_not_hear_is_ended(monkeypatch):
    """Ray may lose a request to stop; a sweep must not wait for ever."""
    cancelled = []

    class Remote:
        def options(self, name):
            self.remote = lambda task: name
            return self

    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "remote", lambda **_: lambda _: Remote())
    monkeypatch.setattr(ray, "cancel", lambda name, force: cancelled.append((name, force)))
    monkeypatch.setattr(
        ray, "wait", lambda names, num_returns, timeout: (names[:1], names[1:]) if timeout else None
    )
    with RayLauncher("local", threads=1, gpus=0) as launcher:
        launcher.submit([SimpleNamespace(name="hears"), SimpleNamespace(name="deaf")])
        launcher.stop()
    assert cancelled == [("hears", False), ("deaf", False), ("deaf", True)]
