"""A short fuzz of every reader; and the fuzzer sees each kind of defect."""

import ctypes
import faulthandler
import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fuzz import ALLOWED, fuzz
from mutate_arrays import Harm
from targets import TARGETS, Target

INPUTS = {
    "record": 30,
    "mapped": 30,
    "torch": 40,
    "torch-old": 40,
    "report": 15,
    "resume": 15,
    "fork": 15,
}
RUNS = ("report", "resume", "fork")
"""They train first, which no process can that is forked from one that pretends a device."""


@pytest.mark.parametrize("name", [name for name in TARGETS if name not in RUNS])
def test_every_input_is_read_or_refused(name):
    outcomes, defects = fuzz(name, seed=0, first=0, count=INPUTS.get(name, 120))
    assert not defects
    assert outcomes["read"]
    # Snapshots and tables leave out what cannot be read.
    assert outcomes["refused"] or name in ("snapshot", "table")


def command(folder, *options):
    """Fuzz in a process of its own; what it writes and what it says."""
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, str(here / "fuzz.py"), *options, "--out", str(folder)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(here.parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "fuzz.json").read_text()), done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_every_run_is_read_or_refused(name, tmp_path):
    written, _ = command(tmp_path, "--inputs", str(INPUTS[name]), "--target", name)
    outcomes = written["targets"][name]
    assert outcomes["read"]
    assert outcomes.get("refused") or name == "report"  # which names what it cannot read


def write(folder):
    (folder / "a.json").write_text('{"a": 1}')


def look_up(folder):
    raise KeyError("a")


def take_memory(folder):
    np.ones(2**30)


def wait(folder):
    end = time.process_time() + 60
    while time.process_time() < end:
        pass


def touch_nothing(folder):
    faulthandler.disable()  # of pytest: no need to tell where this is
    ctypes.string_at(0)


def unpickle(folder):
    pickle.loads(pickle.dumps(Harm()))


def look_elsewhere(folder):
    (folder.parent / "outside").read_bytes()


def say_nothing(folder):
    raise ValueError("something is wrong somewhere")


@pytest.mark.parametrize(
    ("read", "outcome"),
    [(look_up, "KeyError"), (take_memory, "MemoryError"), (wait, "hang"),
     (touch_nothing, "crash by signal 11"), (unpickle, "ran code"),
     (look_elsewhere, "opened a file elsewhere"), (say_nothing, "nameless error")],
)  # fmt: skip
def test_a_defect_is_seen(read, outcome, monkeypatch):
    calls = []

    def after_the_first(folder):  # which is the valid one
        calls.append(folder)
        if len(calls) > 1:
            read(folder)

    monkeypatch.setattr("worker.SECONDS", 0.5)
    monkeypatch.setitem(TARGETS, "bad", Target((write,), after_the_first))
    outcomes, defects = fuzz("bad", seed=0, first=0, count=2)
    assert outcomes[outcome] == 2
    assert outcome not in ALLOWED
    assert [each["input"] for each in defects] == ["0", "1"]


def test_the_command_counts_and_says_where_defects_are(tmp_path):
    options = ["--inputs", "8", "--seed", "3", "--first", "5", "--target", "lines", "results"]
    written, said = command(tmp_path, *options)
    assert written["targets"].keys() == {"lines", "results"}
    assert written["inputs"] == 8
    assert "no defect" in said
