"""Whole runs: reported on a page, and trained on. Slow, so that few inputs reach this far."""

import io
import json
import shutil
import sys
from pathlib import Path
from unittest import mock

from rich.console import Console
from saves import repair_manifest, repair_replay, save_checkpoint

from curious_replay.analysis.load import load_runs
from curious_replay.report.page import report
from curious_replay.run import Choice, fork_run, preset
from curious_replay.run.record.files import write_json

sys.path.append(str(Path(__file__).parents[1]))
from helpers import runs


def write_assay(folder: Path) -> None:
    """A run of the object-interaction assay as its record would be, with a checkpoint."""
    config = preset(Choice(env="object-interaction", scale="debug"), 0).to_json()
    config["env"]["schedule"] = [[0, "empty"], [40, "ball"]]
    config["env"]["action_repeat"] = 1
    write_json(folder / "config.json", config)
    parent = {
        "id": "a", "folder": "/runs/trunk", "step": 20, "frame": 20, "checksum": "0123abcd",
        "checkpoint": "000002-step-20", "changed": {}, "parent": None,
    }  # fmt: skip
    meta = {"seed": 0, "commit": "abc", "resumes": [], "id": "b", "parent": parent}
    write_json(folder / "meta.json", meta)
    lines = {"metrics": [], "episodes": [], "probe": [], "speed": []}
    for t in range(5, 65, 5):
        counters = {"frame": t, "step": t, "update": t // 2}
        sums = {"log/contacts": int(t > 45), "log/interactions": 0, "log/magenta_pixels": 2}
        lines["metrics"].append({**counters, **sums, "replay/share_after_change": 0.5})
        phase = "empty" if t <= 40 else "ball"
        played = {"mode": "train", "return": float(t), "length": 5, "phase": phase}
        lines["episodes"].append({**counters, **played})
        lines["probe"].append({**counters, "scene": 1, "ahead": 1, "mse": 0.1, "mse_object": 1 / t})
        lines["speed"].append({**counters, "session": 1, "steps_per_second": 9.5})
    for name, each in lines.items():
        text = "".join(json.dumps(line) + "\n" for line in each)
        (folder / f"{name}.jsonl").write_text(text)
    save_checkpoint(folder)


def write_report(folder: Path) -> None:
    """The page of the run; a run that cannot be read is named on it."""
    found = load_runs([folder])
    if found.runs:
        report(found)


def write_trained(folder: Path) -> None:
    """A short run of an agent that learns next to nothing."""
    runs.run(runs.config(train={"steps": 40, "prefill": 10, "save_every": 20}), folder)
    runs.run(runs.config(train={"steps": 44, "prefill": 10, "save_every": 20}), folder, resume=True)


def repair_newest(folder: Path) -> None:
    """All checksums of the newest checkpoint."""
    newest = max((folder / "checkpoints").iterdir())
    repair_replay(newest)
    repair_manifest(newest)


def resume(folder: Path) -> None:
    """Train two steps more, without asking git what is run: that is not about the folder."""
    settings = runs.config(train={"steps": 46, "prefill": 10, "save_every": 20})
    with mock.patch("curious_replay.run.record.meta.git_state", return_value=(None, None)):
        runs.train(settings, folder, resume=True, console=Console(file=io.StringIO()))


def fork_anew(folder: Path) -> None:
    """Fork the run with another rule; what is refused leaves nothing."""
    forked = folder / "fork"
    settings = runs.config(rule="count", train={"steps": 46, "prefill": 10, "save_every": 20})
    try:
        with mock.patch("curious_replay.run.record.meta.git_state", return_value=(None, None)):
            fork_run(folder / "run", forked, settings)
        assert (forked / "config.json").exists()
    except ValueError:
        assert not forked.exists()
        raise
    finally:
        shutil.rmtree(forked, ignore_errors=True)
