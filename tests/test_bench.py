"""The benchmarks run, with every option, and say which peers are missing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench"


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
    assert set(results["buffer"]) == {"curious", "limit: NumPy copy"}


def test_only_the_wanted_works_are_timed(tmp_path):
    quick = ["--rounds", 1, "--seconds", 0.001, "--steps", 300, "--capacities", 100]
    run("replay.py", *quick, "--only", "set 16 runs", "add", "--out", tmp_path)
    results = json.loads((tmp_path / "replay.json").read_text())
    assert set(results) == {"machine", "tree", "buffer"}
    assert set(results["tree"]["100"]["curious"]) == {"set 16 runs"}
    assert results["buffer"]["curious"].keys() == {"add"}


@pytest.mark.slow
def test_update(tmp_path):
    quick = ["--sizes", "debug", "--rounds", 1, "--windows", 2, "--length", 4, "--steps", 300]
    peer = ["--sheeprl-python", sys.executable]
    quick += ["--agents", "dreamerpro", "iris", "--scale", "debug"]
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
    assert "One update of each agent at debug scale" in done.stdout
