"""The benchmarks run, with every option, and say which peers are missing."""

import gc
import importlib
import json
import subprocess
import sys
import weakref
from argparse import Namespace
from pathlib import Path

import pytest
import torch

from curious_replay.agents.dreamer_v2 import DreamerV2
from curious_replay.agents.dreamer_v3 import DreamerV3
from curious_replay.run import saved_run

BENCH = Path(__file__).parents[1] / "bench"
OUT_OF_MEMORY = "CUDA out of memory. Tried to allocate 2.00 GiB"


def run(script, *arguments):
    command = [sys.executable, str(BENCH / script), *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True)


def test_replay(tmp_path):
    quick = ["--rounds", 1, "--seconds", 0.001, "--steps", 300, "--capacities", 100, 5000]
    done = run("replay.py", "--peers", *quick, "--out", tmp_path)
    results = json.loads((tmp_path / "replay.json").read_text())
    assert set(results) == {"machine", "tree", "buffer", "growth"}
    assert set(results["tree"]) == {"100", "5000"}
    for rows in (*results["tree"].values(), results["buffer"], results["growth"]):
        assert all(rate > 0 for row in rows.values() for rate in row.values())
    assert set(results["buffer"]["curious"]) == {"sample 16x64", "update 1024", "add"}
    assert "limit: NumPy copy" in results["buffer"]
    assert "curious in torchrl" in results["buffer"] or "without curious in" in done.stderr
    for peer in ("torchrl", "tianshou", "cpprb", "starr"):
        assert (
            peer in results["tree"]["100"]
            or f"without {peer}" in done.stderr
            or (peer == "torchrl" and "torchrl float32" in results["tree"]["100"])
        )
    assert "curious / best other" in done.stdout
    assert "3,000 steps takes" in done.stdout


def test_without_peers_only_ours_is_timed(tmp_path):
    quick = ["--rounds", 1, "--seconds", 0.001, "--steps", 300, "--capacities", 100]
    run("replay.py", *quick, "--out", tmp_path)
    results = json.loads((tmp_path / "replay.json").read_text())
    assert set(results["tree"]["100"]) == {"curious"}
    assert set(results["buffer"]) == {"curious", "curious, no repeats", "limit: NumPy copy"}


def test_only_the_wanted_works_are_timed(tmp_path):
    quick = ["--rounds", 1, "--seconds", 0.001, "--steps", 300, "--capacities", 100]
    run("replay.py", *quick, "--only", "set 16 runs", "add", "--out", tmp_path)
    results = json.loads((tmp_path / "replay.json").read_text())
    assert set(results) == {"machine", "tree", "buffer"}
    assert set(results["tree"]["100"]["curious"]) == {"set 16 runs"}
    assert results["buffer"]["curious"].keys() == {"add"}


def test_novelty(tmp_path):
    quick = ["--steps", 400, "--batch", 4, 8, "--ratios", 4, 64, "--terms", 2]
    done = run("novelty.py", *quick, "--out", tmp_path)
    rows = json.loads((tmp_path / "novelty.json").read_text())["rows"]
    shares = {(row["rule"], row["ratio"]): row["novelty_share"] for row in rows}
    assert shares["curious", 4] > shares["curious", 64] > 0
    assert shares["balanced 0.3", 4] == pytest.approx(0.3)
    assert "| curious | 64 | 2 | 24 |" in done.stdout
    run("novelty.py", *quick, "--no-repeats", "--out", tmp_path)
    apart = json.loads((tmp_path / "novelty.json").read_text())["rows"]
    assert min(row["distinct"] for row in apart) > max(row["distinct"] for row in rows)


@pytest.mark.slow
def test_update(tmp_path):
    quick = ["--sizes", "debug", "--rounds", 1, "--windows", 2, "--length", 4, "--steps", 300]
    peer = ["--sheeprl-python", sys.executable]
    quick += ["--agents", "dreamerpro", "iris", "--scale", "debug"]
    quick += ["--small", "mirror", "--against", BENCH.parent]
    done = run("update.py", *quick, *peer, "--threads", 1, "--out", tmp_path)
    results = json.loads((tmp_path / "update.json").read_text())
    result = results["sizes"]["debug"]
    assert result["seconds"].keys() == {"curious"}
    assert set(result["parameters"]) == {"model", "actor", "critic"}
    assert min(result["flops"].values()) > 0
    parts = {"encoder", "recurrent core", "decoder", "heads", "losses", "imagination", "actor"}
    assert set(result["shares"]) >= parts | {"critic", "optimisers", "other"}
    assert sum(result["shares"].values()) == pytest.approx(1)
    assert min(results["priorities"].values()) > 0
    assert "without sheeprl:" in done.stderr
    assert "One update of size debug" in done.stdout
    assert list(results["agents"]) == [
        "dreamerpro, crafter",
        "dreamerpro, object-interaction",
        "iris, crafter",
    ]
    for row in results["agents"].values():
        assert row["seconds"] > 0 and row["batch"] == [2, 8] and row["parameters"] > 1000
        assert row["precision"] == "float32"
    assert "One update of each agent at debug scale" in done.stdout
    small = results["small"]["mirror"]["milliseconds"]
    assert list(small) == ["before", "now", "now, 16 pixels, a quarter of the starts"]
    assert min(small.values()) > 0
    assert "One small update, mirror" in done.stdout


def test_without_a_card_the_benchmark_of_one_says_so_in_one_line(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run("update.py", "--device", "cuda", "--out", tmp_path)
    message = "bench/update.py --device cuda: torch finds no graphics card here\n"
    assert (caught.value.returncode, caught.value.stderr) == (2, message)


def test_graphs_are_measured_on_a_card_only(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run("update.py", "--graphs", "--out", tmp_path)
    assert caught.value.stderr.endswith("error: --graphs needs --device cuda\n")


@pytest.fixture
def agents(monkeypatch, one_thread):
    """The module that measures agents; what runs change in PyTorch is undone, as is a card."""
    monkeypatch.syspath_prepend(BENCH)
    monkeypatch.setattr(saved_run, "pick_device", lambda *_: "cpu")
    filled = torch.utils.deterministic.fill_uninitialized_memory
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)
    torch.utils.deterministic.fill_uninitialized_memory = True
    yield importlib.import_module("update_agents")
    torch.use_deterministic_algorithms(before, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = filled


def options(names, **changes):
    values = {"device": "cuda", "precision": "auto", "graphs": False, "threads": 1, "rounds": 2}
    return Namespace(agents=names, scale="debug", **{**values, **changes})


def spied(monkeypatch, kind, look):
    """Let every update of a kind of agent be looked at first."""
    update = kind.update

    def seen(self, batch, unread=()):
        look(self)
        return update(self, batch, unread)

    monkeypatch.setattr(kind, "update", seen)


@pytest.mark.parametrize("when", [1, 3])  # the warm-up, and the second round
def test_an_agent_that_a_card_has_no_memory_for_leaves_the_others_their_rows(
    when, agents, monkeypatch
):
    updates = []

    def fail(agent):
        updates.append(agent)
        if len(updates) == when:
            raise torch.OutOfMemoryError(OUT_OF_MEMORY)

    spied(monkeypatch, DreamerV2, fail)
    rows = agents.agent_rows(options(["dreamerv2", "dreamerv3"]))
    failed, *others = rows
    assert failed == "dreamerv2, crafter" and len(others) == 3
    assert rows[failed]["out_of_memory"] == OUT_OF_MEMORY
    assert "seconds" not in rows[failed] and rows[failed]["parameters"] > 1000
    for row in others:
        assert rows[row]["seconds"] > 0 and len(rows[row]["turns"]) == 2
        assert "out_of_memory" not in rows[row]
    lines = agents.agent_table(rows, "debug").splitlines()[2:]
    assert ["out of memory" in line for line in lines] == [True, False, False, False]
    assert "out of memory       2x8  " in lines[0]
    assert json.loads(json.dumps(rows)).keys() == rows.keys()


def test_an_agent_that_cannot_even_be_made_has_a_row(agents, monkeypatch):
    def fail(*_):
        raise torch.OutOfMemoryError(OUT_OF_MEMORY)

    monkeypatch.setattr(agents, "make_agent", fail)
    rows = agents.agent_rows(options(["iris"]))
    assert rows["iris, crafter"]["out_of_memory"] == OUT_OF_MEMORY
    assert agents.agent_table(rows, "debug").splitlines()[2].endswith(" pixels")


@pytest.mark.parametrize(("device", "living"), [("cuda", [0, 0, 0, 0]), ("cpu", [0, 1, 2, 3])])
def test_a_card_has_one_agent_at_a_time(device, living, agents, monkeypatch):
    """Also after one was too large. On a CPU, whose load is not steady, they take turns."""
    made, found, emptied = [], [], []
    make = agents.make_agent

    def count(config, spaces):
        found.append(sum(each() is not None for each in made))
        agent = make(config, spaces)
        agent.parts = [agent]  # which know one another
        made.append(weakref.ref(agent))
        return agent

    def fail(agent):
        if device == "cuda":
            raise torch.OutOfMemoryError(OUT_OF_MEMORY)

    monkeypatch.setattr(agents, "make_agent", count)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(made[-1]() is None))
    spied(monkeypatch, DreamerV2, fail)
    gc.disable()  # nobody else is to free them
    try:
        agents.agent_rows(options(["dreamerv2", "dreamerv3"], device=device))
    finally:
        gc.enable()
    assert found == living
    assert emptied == [True] * (4 if device == "cuda" else 1)


def test_agents_are_measured_as_runs_are_made(agents, monkeypatch):
    found = []

    def look(agent):
        found.append(agent.precision)
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        assert not torch.utils.deterministic.fill_uninitialized_memory
        assert torch.get_num_threads() == 2

    spied(monkeypatch, DreamerV3, look)
    rows = agents.agent_rows(options(["dreamerv3"], precision="bfloat16", threads=2))
    assert found == ["bfloat16"] * 6
    assert [row["precision"] for row in rows.values()] == ["bfloat16"] * 2
    assert agents.agent_table(rows, "debug").splitlines()[2].endswith(", bfloat16")


def test_card():
    done = run("card.py", "--scale", "debug", "--agents", "dreamerv3")
    for precision in ("float32", "bfloat16"):
        assert f"| `dreamerv3` | {precision} | 0.0" in done.stdout


@pytest.mark.slow
def test_only_checkouts_are_compared(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as caught:
        run("update.py", "--against", tmp_path, "--out", tmp_path)
    assert f"must be a checkout of this project, got {tmp_path}" in caught.value.stderr


@pytest.mark.slow
def test_a_checkout_without_a_setting_is_no_contestant(tmp_path):
    """What an older one cannot do is said, not left out in silence."""
    for package in ("curious_replay", "curious_replay/agents"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    agents = tmp_path / "curious_replay/agents"
    (agents / "spaces.py").touch()
    (agents / "dreamer_v3_config.py").write_text(
        "from dataclasses import dataclass\n@dataclass\nclass DreamerV3Config:\n    size: str\n"
    )
    quick = ["--sizes", "--agents", "--rounds", 1, "--steps", 300, "--small", "mirror"]
    done = run("update.py", *quick, "--against", tmp_path, "--out", tmp_path)
    assert "without mirror, before: DreamerV3Config of this checkout has no imag" in done.stderr
    results = json.loads((tmp_path / "update.json").read_text())
    assert "before" not in results["small"]["mirror"]["milliseconds"]
    assert "agents" not in results
