"""Batches that are copied to a device ahead, in a stream that is as late as can be."""

import gc
import weakref
from unittest import mock

import numpy as np
import pytest
import torch
from device.test_agents_on_a_device import batch_for, make
from device.test_runs_on_a_device import metrics, run, settings, use  # noqa: F401
from helpers.device.ours import OURS
from helpers.device.pretended import NAME, pretend
from helpers.device.streams import LateStream

from curious_replay.agents import updates
from curious_replay.agents.device import cuda
from curious_replay.agents.device.copies import Sent
from curious_replay.agents.interface import NonFiniteError
from curious_replay.run.loop.crew import Crew, Leader

pytestmark = pytest.mark.usefixtures("one_thread")


def arrays():
    return {"image": np.arange(6, dtype=np.uint8), "reward": np.ones(3, np.float32)}


@pytest.fixture
def stream(monkeypatch):
    """Let agents on the device have such a stream, one for all."""
    made = LateStream()
    monkeypatch.setattr(
        updates.cuda, "side_stream", lambda device: made if device.type == NAME else None
    )
    return made


def test_what_was_sent_is_there_once_it_is_received():
    with pretend() as events:
        stream, batch = LateStream(), arrays()
        sent = Sent(batch, ["image"], stream, torch.device(NAME))
        assert not events.synchronisations and events.totals()["bytes"] == 6
        (early,) = (each.cpu() for each in sent._tensors.values())
        assert not (early == torch.from_numpy(batch["image"])).any()
        assert {name: each.cpu().tolist() for name, each in sent.receive().items()} == {
            "image": batch["image"].tolist()
        }
        assert [*map(id, stream.used)] == [*map(id, sent._tensors.values())]
    assert sent["reward"] is batch["reward"] and sent["image"] is batch["image"]


def test_memory_of_the_host_is_not_free_before_it_was_copied():
    with pretend():
        stream = LateStream()
        sent = Sent(arrays(), ["image"], stream, torch.device(NAME))
        ((target, source),) = stream.copies
        pinned, stream.copies[0] = weakref.ref(source), (target, source.clone())
        del source
        assert pinned() is not None
        sent.receive()
        del sent
        gc.collect()
        assert pinned() is None


@pytest.mark.parametrize("name", OURS)
def test_an_update_from_a_batch_that_was_sent_is_the_same(name, stream):
    with pretend() as events:
        found, wanted = make(name, "discrete", NAME), make(name, "discrete", NAME)
        batch = batch_for(found)
        sent = found.send(batch)
        assert isinstance(sent, Sent) and sent.keys() == batch.keys()
        transfers = events.totals()["transfers"]
        feedback = found.update(sent)
        assert events.totals()["transfers"] == transfers + 1  # what is read
        assert feedback.metrics == wanted.update(batch).metrics
        assert len(stream.used) == len(found.fields)


def test_a_batch_that_is_not_waited_for_is_noticed(stream, monkeypatch):
    monkeypatch.setattr(LateStream, "wait", lambda *_: None)
    with pretend(), pytest.raises(NonFiniteError):
        agent = make("dreamerv3", "discrete", NAME)
        agent.update(agent.send(batch_for(agent)))


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, RuntimeError("no memory to pin")])
def test_where_there_is_no_room_for_two_batches_the_next_one_stays(stream, monkeypatch, error):
    with pretend():
        agent = make("dreamerv3", "discrete", NAME)
        batch = batch_for(agent)
        monkeypatch.setattr(LateStream, "mark", mock.Mock(side_effect=error))
        assert agent.send(batch) is batch


def test_several_processes_hand_out_windows_of_the_host(stream):
    with pretend():
        agent = make("dreamerv3", "discrete", NAME)
        batch = batch_for(agent)
        assert isinstance(Crew().send(agent, batch), Sent)
        assert Leader.send(mock.Mock(), agent, batch) is batch
    assert make("dreamerv3", "discrete").send(batch) is batch  # a CPU has it


def test_runs_with_copies_ahead_are_the_same_and_resume_exactly(tmp_path, use, stream, monkeypatch):  # noqa: F811
    """The batch that is next is on its way when the run is saved."""
    use(NAME)
    with pretend():
        run(settings(steps=15), tmp_path / "whole")
        run(settings(steps=13), tmp_path / "parts")
        run(settings(steps=15), tmp_path / "parts", resume=True)
        assert stream.used
        monkeypatch.setattr(updates.cuda, "side_stream", lambda device: None)
        run(settings(steps=15), tmp_path / "without")
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "parts")
    assert metrics(tmp_path / "whole") == metrics(tmp_path / "without")


def test_what_cuda_is_asked_for(monkeypatch):
    """In order: the stream that computes waits for the mark, and then owns the tensors, too."""
    calls = mock.MagicMock()
    for name in ("Stream", "stream", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, getattr(calls, name))
    stream = cuda.side_stream(torch.device("cuda"))
    with stream.beside():
        mark = stream.mark()
    calls.stream.assert_called_once_with(calls.Stream.return_value)
    assert mark is calls.Stream.return_value.record_event.return_value
    calls.reset_mock()
    stream.wait(mark, [calls.tensor])
    here = calls.current_stream.return_value
    assert calls.mock_calls[1:] == [
        mock.call.current_stream().wait_event(mark),
        mock.call.tensor.record_stream(here),
    ]
    assert cuda.side_stream(torch.device("cpu")) is None
