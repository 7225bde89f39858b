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
    assert "One update of each agent at debug scale" in done.stdout
    small = results["small"]["mirror"]["milliseconds"]
    assert list(small) == ["before", "now", "now, 16 pixels, half of the starts"]
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


def test_card():
    done = run("card.py", "--scale", "debug", "--agents", "dreamerv3")
    assert "| `dreamerv3` | 0.0" in done.stdout


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
