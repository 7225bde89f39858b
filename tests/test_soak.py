"""The soak, shortened: it meets every activity, finds no difference here, and finds those there."""

import json
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import pytest
from helpers.processes import PATIENCE, started

ROOT = Path(__file__).parents[1]
SOAK = ROOT / "soak"
sys.path.insert(0, str(SOAK))

import compare  # noqa: E402  # found by the path above
from cases import ENVIRONMENTS, cases  # noqa: E402
from counts import Counts  # noqa: E402
from notes import ACTIVITIES, Trace  # noqa: E402
from victim import WAYS, Size  # noqa: E402

from curious_replay.replay import ReplayBuffer  # noqa: E402
from curious_replay.run.settings.agents import AGENTS  # noqa: E402
from curious_replay.run.settings.replay_config import REPLAYS  # noqa: E402

OURS = [name for name in AGENTS if name != "fake"]  # which other tests add


def soak(*options):
    return [sys.executable, str(SOAK / "soak.py"), *map(str, options)]


@pytest.mark.slow
def test_a_short_soak_finds_nothing(tmp_path):
    options = ["--rounds", 4, "--minutes", 60, "--agents", "dreamerv3", "dreamerpro", "--seed", 1]
    command = soak(*options, "--watch", 400, "--out", tmp_path)
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        said, _ = process.communicate(timeout=3 * PATIENCE)
    found = Counts.read(tmp_path / "soak.json")
    assert process.returncode == 0, said
    assert found.finished and found.rounds == 4 and found.lines > 50
    assert {life["agent"] for life in found.lives} == {"dreamerv3", "dreamerpro"}
    assert sum(sum(ways.values()) for ways in found.kills.values()) >= 14
    assert "no difference" in said
    assert not (tmp_path / "runs").exists()


def test_memory_is_not_judged_before_the_buffer_is_full():
    done = subprocess.run(soak("--watch", 90), capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "--watch must be 0 or at least 400" in done.stderr


@pytest.mark.slow
def test_an_interrupted_soak_keeps_its_counts(tmp_path):
    command = soak("--watch", 0, "--agents", "dreamerv3", "--out", tmp_path)
    with started(command, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not (tmp_path / "soak.json").exists():
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "interrupted" in said
    assert Counts.read(tmp_path / "soak.json").starts > 0


INTERRUPT_AT_A_START = """
import os, runpy, signal, sys
from multiprocessing.process import BaseProcess

start, started = BaseProcess.start, []

def start_and_interrupt(process):
    start(process)
    started.append(process)
    if len(started) == 2:  # the first that is to stop itself
        os.kill(os.getpid(), signal.SIGINT)

BaseProcess.start = start_and_interrupt
sys.argv = sys.argv[1:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
def test_an_interrupt_while_a_run_is_started_leaves_nothing(tmp_path):
    python, *command = soak("--watch", 0, "--agents", "dreamerv3", "--out", tmp_path)
    done = subprocess.run(
        [python, "-c", INTERRUPT_AT_A_START, *command],
        stdout=subprocess.PIPE,  # which whatever is left would keep open
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 130
    assert "interrupted" in done.stdout
    assert Counts.read(tmp_path / "soak.json").starts == 2


def test_every_agent_meets_every_rule_and_world_that_fits():
    endless = cases(OURS, random.Random(0))
    worlds = len(ENVIRONMENTS)
    seen = {(c.agent, c.environment, c.replay) for c in islice(endless, 6 * worlds * len(REPLAYS))}
    assert len(seen) == 5 * worlds * len(REPLAYS) + (worlds - 2) * len(REPLAYS)
    assert ("iris", "object-interaction") not in {(agent, world) for agent, world, _ in seen}
    with pytest.raises(ValueError, match=r"--agents must be among dreamerv3, .*got 'x'"):
        next(cases(["x"], random.Random(0)))


def test_notes_outlive_their_writer_and_nest(tmp_path):
    writer, reader = Trace(tmp_path / "trace"), Trace(tmp_path / "trace")
    writer.begin(None, 0)
    assert reader.activity == "starting"
    with writer.during("evaluating"):
        with writer.during("writing logs"):
            assert reader.activity == "writing logs"
        assert reader.activity == "evaluating"
    assert reader.activity == "starting"
    assert reader.seconds("evaluating") >= reader.seconds("writing logs") > 0
    assert reader.seconds("saving") == 0


def test_a_process_stops_where_it_was_aimed_at(tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr("os.kill", lambda pid, number: sent.append(number))
    trace = Trace(tmp_path / "trace")
    trace.begin("saving", 1)
    for activity in ("saving", "updating"):
        with trace.during(activity):
            assert not sent
    assert not trace.reached
    with trace.during("saving"):
        assert sent == [signal.SIGSTOP]
        assert trace.reached
    with trace.during("saving"):
        assert len(sent) == 1


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """A run that is complete, with the fake agent."""
    from helpers.runs import config, run  # noqa: PLC0415  # makes an agent known

    folder = tmp_path_factory.mktemp("complete") / "run"
    run(config("toy/two-rooms", train={"steps": 60}, record={"snapshot_every": 20}), folder)
    return folder


def _change(path):
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)


def _last(folder):
    return max((folder / "checkpoints").glob("0*"))


def _another_reward(run):
    """Save the replay of the last checkpoint again, with another number in one step."""
    folder = _last(run) / "replay"
    buffer = ReplayBuffer.load(folder)
    buffer.storage.chunk(0, 0).fields[buffer.storage.layout.find("reward")][7] += 1
    shutil.rmtree(folder)
    buffer.save(folder)


DAMAGE = {
    "metrics.jsonl differs": lambda run: _change(run / "metrics.jsonl"),
    "missing: snapshots/000000040.npz": lambda run: (run / "snapshots/000000040.npz").unlink(),
    "too many: replay/buffer-1/lock": lambda run: _touch(run / "replay/buffer-1/lock"),
    "left behind: videos/.part-x.mp4": lambda run: _touch(run / "videos/.part-x.mp4"),
    "left behind: checkpoints/.new-1": lambda run: (run / "checkpoints/.new-1").mkdir(),
    "agent.safetensors of the last": lambda run: _change(_last(run) / "agent.safetensors"),
    "replay: reward of the last checkpoint differs": _another_reward,
    "checkpoints are of the steps": lambda run: shutil.rmtree(_last(run)),
}


def _touch(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


@pytest.mark.parametrize("expected", DAMAGE)
def test_differences_are_found_and_named(expected, complete, tmp_path):
    other = tmp_path / "run"
    shutil.copytree(complete, other)
    assert compare.at_end(complete, other) == []
    DAMAGE[expected](other)
    assert any(found.startswith(expected) for found in compare.at_end(complete, other))


def test_lines_after_a_kill_are_the_first_of_the_whole_run(complete, tmp_path):
    other = tmp_path / "run"
    shutil.copytree(complete, other)
    path = other / "metrics.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + lines[1][:5])  # torn, as by a kill
    assert compare.after_kill(complete, other) == []
    path.write_bytes(lines[0] + lines[0])
    assert compare.after_kill(complete, other) == ["metrics.jsonl has other lines after a kill"]


def test_growth_is_judged_by_the_least_of_each_third():
    case = next(cases(["dreamerv3"], random.Random(0)))
    case = case.longer(90)
    counts = Counts(0)
    calm = [Size(200, 9), Size(999, 50)]
    sizes = [Size(100, 5)] * 6 + calm * 6 + [Size(0, 0)]  # nothing is left of it at its end
    counts.life(case, [*zip(range(0, 95, 5), sizes, strict=True)])
    assert not counts.wrong
    assert counts.lives[0]["memory"] == [200, 200]
    grown = [Size(100, 9)] * 12 + [Size(104, 10)] * 6
    counts.life(case, [*zip(range(0, 90, 5), grown, strict=True)])
    assert [each.rpartition(": ")[2] for each in counts.wrong] == [
        "memory grew from 100.0 to 104.0 MB",
        "open files grew from 9 to 10",
    ]
    counts.life(case, [(80, Size(1, 1))])
    assert "not seen often enough" in counts.wrong[-1]


def test_the_page_shows_the_counts_that_are_kept():
    counts = Counts.read(ROOT / "results/soak/soak.json")
    if counts.minutes >= 60:  # what a shorter one meets is up to the machine
        assert not counts.wrong
        assert {*counts.kills} == {*ACTIVITIES}
        assert {way for ways in counts.kills.values() for way in ways} == {*WAYS}
        assert {*counts.by["agent"]} == {*OURS}
    page = (ROOT / "docs/reliability.md").read_text()
    shown = re.search(r"<!-- soak -->\n(.*)\n<!-- end of soak -->", page, re.DOTALL)
    assert shown is not None
    assert shown[1] == counts.markdown()
    printed = subprocess.run(
        soak("--markdown", ROOT / "results/soak/soak.json"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout == counts.markdown() + "\n"


def test_counts_come_back_as_they_were_and_are_shown(tmp_path):
    case = next(cases(["iris"], random.Random(0)))
    counts = Counts(7, minutes=1.5)
    counts.kill(case, "saving", WAYS[0])
    counts.compared(case, 27)
    counts.complain(case, ["metrics.jsonl differs"])
    counts.write(tmp_path)
    assert Counts.read(tmp_path / "soak.json") == counts
    assert json.loads((tmp_path / "soak.json").read_text())["kills"] == {"saving": {WAYS[0]: 1}}
    plain = counts.plain()
    assert re.search(r"^saving +1 +0 +0 +1$", plain, re.MULTILINE)
    assert "1 kills in 1 runs (0 starts), 27 lines compared: 1 differences" in plain
    assert plain.endswith("metrics.jsonl differs")
    assert "| iris | 1 | 1 |" in counts.markdown()
