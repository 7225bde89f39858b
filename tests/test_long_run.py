"""Numbers of a long run, from its record to the page."""

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from curious_replay.run import Choice, preset

ROOT = Path(__file__).parents[1]
TOOL = ROOT / "soak" / "long_run.py"
sys.path.insert(0, str(TOOL.parent))
from long_run import GIB, LongRun, measure  # noqa: E402

from curious_replay.analysis.load import load_runs  # noqa: E402
from curious_replay.run.worlds.environments import inspect_env  # noqa: E402


@pytest.fixture
def run(tmp_path):
    """Twenty minutes: 100 steps a second for ten minutes, then 50; two lines a minute."""
    config = preset(Choice(env="toy/count", agent="dreamerv3", scale="debug"))
    config = replace(config, replay=replace(config.replay, capacity=70_000))
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config.to_json()))
    (folder / "meta.json").write_text("{}")
    speeds = [100.0] * 20 + [50.0] * 20
    with (folder / "speed.jsonl").open("w") as file:
        step = 0
        for speed in speeds:
            step += int(30 * speed)
            values = {"frame": step, "step": step, "session": 1, "steps_per_second": speed}
            file.write(json.dumps(values) + "\n")
    return folder


def gib(steps):
    config = preset(Choice(env="toy/count", agent="dreamerv3", scale="debug"))
    return steps * inspect_env("toy/count", config.env).step_bytes / GIB


def test_speeds_and_sizes_by_interval(run):
    (found,) = load_runs([run]).runs
    long = measure(found, memory=gib(59_000))
    assert long.steps_per_second == pytest.approx([100, 100, 50, 50])
    assert long.stored == pytest.approx([gib(n) for n in (30_000, 60_000, 70_000, 70_000)])
    assert long.since_full == pytest.approx([50, 50])


def test_a_buffer_that_never_outgrew_memory_shows_nothing(run):
    (found,) = load_runs([run]).runs
    for steps in (1, 70_000):
        with pytest.raises(ValueError, match="--memory must be between"):
            measure(found, memory=gib(steps))


def test_the_tool_writes_numbers_and_a_picture(run, tmp_path):
    out = tmp_path / "out"
    command = [sys.executable, str(TOOL), str(run), "--out", str(out), "--memory"]
    done = subprocess.run([*command, str(gib(59_000))], capture_output=True, text=True, check=True)
    long = LongRun(**json.loads((out / "long-run.json").read_text()))
    assert "100 steps a second until the buffer was larger than memory, 50 from then" in done.stdout
    assert done.stdout == long.markdown() + "\n"
    assert (out / "long-run.svg").read_text().startswith("<?xml")
    refused = subprocess.run([*command, "1000"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "--memory must be between" in refused.stderr


def test_the_page_shows_the_numbers_that_are_kept():
    kept = ROOT / "results/long-run/long-run.json"
    page = (ROOT / "docs/reliability.md").read_text()
    shown = re.search(r"<!-- long run -->\n(.*)\n<!-- end of long run -->", page, re.DOTALL)
    printed = subprocess.run(
        [sys.executable, str(TOOL), "--markdown", str(kept)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown is not None
    assert printed.stdout == shown[1] + "\n"
