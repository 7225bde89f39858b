"""Signals as the command line meets them, with environments in processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("fake_cli.py")


def start(folder, *more):
    arguments = [
        "train", "--env", "toy/count", "--agent", "fake", "--scale", "debug", "--logdir",
        str(folder), "--env.processes", "--env.num-envs", "2", "--train.steps", "1e6",
        "--train.save-every", "0", *more,
    ]  # fmt: skip
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_the_command_in_order(number, code, tmp_path):
    process = start(tmp_path)
    metrics = tmp_path / "metrics.jsonl"
    while process.poll() is None and not (metrics.exists() and metrics.read_text()):
        time.sleep(0.02)
    os.killpg(process.pid, number)  # environments get it too, as from a terminal or a scheduler
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code, output
    assert f"stopped by {signal.Signals(number).name}" in output
    assert "--resume` goes on" in output
    assert "failed" not in output  # no environment was lost on the way
    last = sorted((tmp_path / "checkpoints").iterdir())[-1].name
    assert last.startswith("000002-step-")
