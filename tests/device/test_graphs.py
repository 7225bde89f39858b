"""Updates that a device repeats: when they are recorded, and that each does all that it should.

A tape stands in for a graph of CUDA: it repeats kernels without Python (helpers/device/tape.py).
"""

from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch
from device.test_agents_on_a_device import (  # noqa: F401
    AT_ONCE,
    PAIRS,
    batch_for,
    every_agent,
    history,
    make,
    same_random_numbers,
)
from device.test_runs_on_a_device import metrics, resumes, run, settings, use  # noqa: F401
from helpers.device import faults
from helpers.device.pretended import NAME, pretend
from helpers.device.tape import FreedMemoryError, NotRecordableError, Recordings

from curious_replay.agents import iris
from curious_replay.agents.blocks.tokens.transformer import seeded
from curious_replay.agents.device import cuda, graphs
from curious_replay.agents.device.graphs import Graphs
from curious_replay.agents.interface import NonFiniteError
from curious_replay.agents.precision import LossScale
from curious_replay.errors import UsageError
from curious_replay.run.record.record_files import read_meta

pytestmark = pytest.mark.usefixtures("one_thread")
CUDA = torch.device("cuda")
LARGEST = 2.0**127


@pytest.fixture
def capture(monkeypatch):
    """Let agents on the device record on a tape, after one warm-up."""
    made = Recordings()
    monkeypatch.setattr(graphs, "WARM_UPS", 1)
    monkeypatch.setattr(cuda, "capture", made.capture)
    return made


def recorded(name, kind="discrete", **settings):
    agent = make(name, kind, NAME, **settings)
    agent.use_graphs(())
    return agent


def same(found, wanted):
    assert found.metrics == pytest.approx(wanted.metrics, rel=1e-5, abs=1e-6, nan_ok=True)
    assert found.signals.keys() == wanted.signals.keys()
    for name, signal in wanted.signals.items():
        np.testing.assert_allclose(found.signals[name], signal, rtol=1e-5, atol=1e-5)


def record(agent, work):
    cuda.capture(agent.device, agent.generator).record(work)


def on_device(agent, batch):
    return {name: agent._put(batch[name]) for name in agent.fields}


@every_agent
def test_repeated_updates_are_those_that_the_host_would_make(name, kind, capture):
    wanted = history(name, kind)
    with pretend() as events:
        agent = recorded(name, kind)
        batch, other = batch_for(agent), batch_for(agent, seed=1)
        agent.update(batch)
        same(agent.update(batch), wanted.second)
        for key, value in agent.tensors().items():
            found = value.detach().cpu()
            assert torch.allclose(found, wanted.saved[key], rtol=1e-4, atol=1e-5), key
        events.clear()
        same(agent.update(batch), wanted.third)
        # The batch is copied to where it was before, and feedback is read. Nothing is launched.
        assert events.totals()["kernels"] == len(agent.fields)
        assert events.totals()["synchronisations"] == 1
        same(agent.update(other), wanted.fourth)
        (tape,), inputs = capture.tapes, on_device(agent, other)
        record(agent, lambda: agent.learn(inputs, (), None))
    assert capture.warm_ups == 1
    assert len(tape.kernels) > 500
    assert capture.tapes[1].kernels == tape.kernels  # whatever the batch


def compared(found, wanted, batches):
    """Update both agents, of which one is recorded."""
    for batch in batches:
        same(found.update(batch), wanted.update(batch))


def test_a_loss_scale_is_decided_on_by_the_device(capture):
    with pretend():
        agents = [recorded("dreamerv3"), make("dreamerv3", "discrete", NAME)]
        for agent in agents:
            for optimiser in agent.optimisers.values():
                optimiser.loss_scale = LossScale(agent.device)
        batch = batch_for(agents[0])
        compared(*agents, [batch] * 3)
        for agent in agents:
            next(iter(agent.optimisers.values())).loss_scale.factor.fill_(LARGEST)
        compared(*agents, [batch] * 3)
        first = [next(iter(agent.optimisers.values())) for agent in agents]
        assert first[0].loss_scale.factor.item() == first[1].loss_scale.factor.item() < LARGEST
        assert first[0].steps.item() == first[1].steps.item() < 6
    assert len(capture.tapes) == 1


def test_an_update_that_is_not_finite_is_named_and_leaves_no_trace(capture):
    with pretend():
        agents = recorded("dreamerv2"), make("dreamerv2", "discrete", NAME)
        good, bad = batch_for(agents[0]), batch_for(agents[0], seed=1)
        bad["reward"][0, 3] = np.nan
        compared(*agents, [good] * 3)
        for agent in agents:
            with pytest.raises(NonFiniteError, match="model/reward"):
                agent.update(bad)
        compared(*agents, [good] * 2)
        assert agents[0].optimisers["model_adam"].steps.item() == 5
    assert len(capture.tapes) == 1


def test_parts_that_begin_later_are_recorded_when_they_do(capture, monkeypatch):
    """IRIS, with dropout."""
    monkeypatch.setitem(AT_ONCE, "model_after", 2)
    monkeypatch.setitem(AT_ONCE, "actor_after", 5)
    monkeypatch.setitem(AT_ONCE, "dropout", 0.1)
    monkeypatch.setattr(iris, "seeded", seeded)
    with pretend():
        agents = recorded("iris"), make("iris", "discrete", NAME)
        assert agents[0].config.dropout > 0
        batches = [batch_for(agents[0], seed=seed) for seed in range(8)]
        compared(*agents, batches)
    # Each time: a warm-up, then an update is recorded.
    assert capture.warm_ups == len(capture.tapes) == 3
    lengths = [len(tape.kernels) for tape in capture.tapes]
    assert lengths == sorted(lengths) and lengths[0] < lengths[1] < lengths[2]


def test_a_copy_from_time_to_time_is_made_in_its_time(capture, monkeypatch):
    """The target critic of DreamerV2."""
    monkeypatch.setitem(AT_ONCE, "target_every", 2)
    with pretend():
        agents = recorded("dreamerv2"), make("dreamerv2", "discrete", NAME)
        assert agents[0].config.target_every == 2
        compared(*agents, [batch_for(agents[0], seed=seed) for seed in range(6)])
    assert len(capture.tapes) == 1


def test_loaded_tensors_are_recorded_anew(capture):
    with pretend():
        agent, other = recorded("dreamerv3"), make("dreamerv3", "discrete", NAME)
        batch = batch_for(agent)
        compared(agent, other, [batch] * 2)
        saved = {name: value.clone() for name, value in agent.tensors().items()}
        compared(agent, other, [batch])
        for each in (agent, other):
            each.load_tensors(saved)
        compared(agent, other, [batch] * 2)
        assert len(capture.tapes) == 2
        agent.compute_in("float32")
        compared(agent, other, [batch] * 2)
    assert len(capture.tapes) == capture.warm_ups == 3


def test_runs_are_repeated_resumed_and_remembered(tmp_path, use, capture):  # noqa: F811
    use(NAME)

    def settings_for(steps, graphs):
        config = settings(steps=steps)
        return replace(config, train=replace(config.train, graphs=graphs))

    with pretend():
        run(settings_for(16, False), tmp_path / "without")
        run(settings_for(16, True), tmp_path / "whole")
        assert len(capture.tapes) == 1
        run(settings_for(14, True), tmp_path / "parts")
        run(settings_for(15, True), tmp_path / "parts", resume=True)
        run(settings_for(16, False), tmp_path / "parts", resume=True)
    wanted = metrics(tmp_path / "without")
    assert wanted[-1]["update"] > 3
    for name in ("whole", "parts"):
        for line, other in zip(metrics(tmp_path / name), wanted, strict=True):
            assert line == pytest.approx(other, rel=1e-4, abs=1e-5)
    assert read_meta(tmp_path / "whole")["graphs"] is True
    assert read_meta(tmp_path / "without")["graphs"] is False
    assert [each.get("graphs") for each in resumes(tmp_path / "parts")] == [True, False]


UNKNOWN, GONE = "generator that the graph does not know", "made before the recording and is gone"
FAULTS = {
    faults.read_a_number: (NotRecordableError, "number to host"),
    faults.choose_by_the_batch: (AssertionError, None),
    faults.replace_a_tensor: (FreedMemoryError, GONE),
    faults.renew_a_constant: (FreedMemoryError, f"mul at agents/.*{GONE}"),
    faults.copy_the_generator: (NotRecordableError, UNKNOWN),
    faults.draw_from_a_second_generator: (NotRecordableError, f"rand at agents/.*{UNKNOWN}"),
    faults.count_on_the_host: (AssertionError, None),
}


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__)
def test_a_fault_of_each_kind_is_found(plant, capture, monkeypatch):
    plant(monkeypatch)
    error, message = FAULTS[plant]
    with pretend():
        agents = recorded("dreamerv3"), make("dreamerv3", "discrete", NAME)
        with pytest.raises(error, match=message):
            for seed in range(4):
                batch = batch_for(agents[0], seed=seed)
                for agent in agents:
                    agent.shown = batch
                compared(*agents, [batch])


def test_kernels_that_depend_on_the_batch_are_found(capture, monkeypatch):
    faults.choose_by_the_batch(monkeypatch)
    with pretend():
        agent = make("dreamerv3", "discrete", NAME)
        for seed in range(2):
            agent.shown = batch_for(agent, seed=seed)
            inputs = on_device(agent, agent.shown)
            agent.update(agent.shown)
            record(agent, lambda: agent.learn(inputs, (), None))  # noqa: B023
    first, second = (tape.kernels for tape in capture.tapes)
    assert first != second


class Again:
    """A `Capture` that does the work again, on any device, and notes what it is asked for."""

    def __init__(self):
        self.asked = []

    def aside(self):
        self.asked.append("aside")
        return mock.MagicMock()

    def record(self, work):
        self.asked.append("record")
        result = torch.zeros_like(work())

        def repeat():
            self.asked.append("repeat")
            result.copy_(work())

        return result, repeat


def test_work_is_recorded_after_three_warm_ups_and_repeated_from_then_on():
    again, addresses = Again(), set()
    repeater = Graphs(again)

    def double(inputs):
        addresses.add(inputs["x"].data_ptr())
        return 2 * inputs["x"]

    for number in range(6):
        found = repeater.run("same", double, {"x": torch.full((2,), float(number))})
        assert found.tolist() == [2 * number] * 2
    assert again.asked == ["aside"] * 3 + ["record"] + ["repeat"] * 3
    assert len(addresses) == 1


@pytest.mark.parametrize(
    ("structure", "x"),
    [("other", torch.ones(2)), ("same", torch.ones(1, 2)), ("same", torch.ones(2).double())],
    ids=["structure", "shape", "dtype"],
)
def test_what_has_another_structure_is_recorded_anew(structure, x):
    again = Again()
    repeater = Graphs(again)
    for _ in range(4):
        repeater.run("same", lambda inputs: inputs["x"], {"x": torch.ones(2)})
    again.asked.clear()
    for _ in range(4):
        repeater.run(structure, lambda inputs: inputs["x"], {"x": x})
    assert again.asked == ["aside"] * 3 + ["record", "repeat"]
    repeater.forget()
    repeater.run(structure, lambda inputs: inputs["x"], {"x": x})
    assert again.asked[-1] == "aside"


def test_what_cuda_is_asked_for(monkeypatch):
    """The generator is told before anything is recorded, and other threads may go on."""
    calls, generator = mock.MagicMock(), torch.Generator()
    for name in ("Stream", "stream", "current_stream", "set_stream", "CUDAGraph", "graph"):
        monkeypatch.setattr(torch.cuda, name, getattr(calls, name))
    calls.graph.return_value.__exit__.return_value = None
    made = cuda.capture(CUDA, generator)
    side, here = calls.Stream.return_value, calls.current_stream.return_value
    calls.reset_mock()
    with made.aside():
        calls.work()
    order = [name for name, *_ in calls.mock_calls if "__" not in name]
    assert order == ["current_stream", "Stream().wait_stream", "stream", "work",
                     "current_stream().wait_stream"]  # fmt: skip
    side.wait_stream.assert_called_once_with(here)
    here.wait_stream.assert_called_once_with(side)

    calls.reset_mock()
    result, repeat = made.record(lambda: calls.work() and "result")
    assert result == "result" and repeat is calls.CUDAGraph.return_value.replay
    order = [name for name, *_ in calls.mock_calls if name.rpartition(".")[2] not in ("__bool__",)]
    assert order == ["CUDAGraph", "CUDAGraph().register_generator_state", "graph",
                     "current_stream", "graph().__enter__", "work",
                     "graph().__exit__"]  # fmt: skip
    calls.graph.assert_called_once_with(
        calls.CUDAGraph.return_value, stream=side, capture_error_mode="thread_local"
    )

    def fails():
        raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(RuntimeError, match="not permitted") as error:
        made.record(fails)
    assert error.value.__notes__ == [
        "An update was being recorded: --train.no-graphs does without that."
    ]
    calls.set_stream.assert_called_once_with(here)


def test_a_spoiled_recording_tells_what_spoiled_it(monkeypatch):
    """CUDA's own error, of the recording's end, says nothing about the cause."""
    calls = mock.MagicMock()
    for name in ("Stream", "current_stream", "set_stream", "CUDAGraph", "graph"):
        monkeypatch.setattr(torch.cuda, name, getattr(calls, name))
    calls.graph.return_value.__exit__.side_effect = RuntimeError("capture was invalidated")
    made = cuda.capture(CUDA, torch.Generator())

    def fails():
        raise ValueError("the cause")

    with pytest.raises(ValueError, match="the cause") as error:
        made.record(fails)
    assert error.value.__notes__
    calls.set_stream.assert_called_once_with(calls.current_stream.return_value)


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_a_cpu_refuses(name, kind):
    with pytest.raises(UsageError, match=r"--train.graphs needs a graphics card.*on the cpu"):
        make(name, kind).use_graphs(())


@pytest.mark.parametrize("name", ["dreamerv3", "plan2explore"])
def test_some_starts_are_refused_where_td_is_read(name, capture, monkeypatch):
    agent = make(name, "discrete")
    getattr(agent, "dreamer", agent).starts = 0.5
    with pytest.raises(UsageError, match=r"--agent.starts 0.5 with the signal td"):
        agent.use_graphs(())
    agent.use_graphs({"td"})
    assert agent.graphs is not None
