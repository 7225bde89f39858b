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
SLOW = {"report", "resume", "fork"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in TARGETS]
)
def test_every_input_is_read_or_refused(name):
    outcomes, defects = fuzz(name, seed=0, first=0, count=INPUTS.get(name, 120))
    assert not defects
    assert outcomes["read"]
    # Snapshots and tables leave out what cannot be read, and a report names it.
    assert outcomes["refused"] or name in ("snapshot", "table", "report")


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
    here = Path(__file__).parent
    options = ["--inputs", "8", "--seed", "3", "--first", "5", "--target", "lines", "results",
               "--out", str(tmp_path)]  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(here / "fuzz.py"), *options], capture_output=True, text=True,
        check=False, env={**os.environ, "PYTHONPATH": str(here.parents[1])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    written = json.loads((tmp_path / "fuzz.json").read_text())
    assert written["targets"].keys() == {"lines", "results"}
    assert written["inputs"] == 8
    assert "no defect" in done.stdout
