"""Waiting for what other processes do, and what they leave behind."""

import json
import re
import time


def wait_for(true, process=None, seconds=120):
    """Until it is true, which whoever is to make it so, `process`, must live to see."""
    deadline = time.monotonic() + seconds
    while not true():
        assert process is None or process.poll() is None, f"ended with code {process.returncode}"
        assert time.monotonic() < deadline
        time.sleep(0.05)


def saved_on_the_way(runs):
    """Whether any run was saved after its first step; one that is stopped before says nothing."""
    return any(runs.glob("*/checkpoints/*-step-[1-9]*"))


def saves(runs):
    """How often runs were saved, all together."""
    last = {}
    for path in runs.glob("*/checkpoints/[0-9]*-step-*"):
        last[path.parent] = max(int(path.name.split("-")[0]), last.get(path.parent, 0))
    return sum(last.values())


def stopped_in_order(log):
    """Whether the last thing a run did was to save: its log ends with the step of a checkpoint."""
    steps = re.findall(r" step (\d+) ", log.read_text())
    return bool(steps) and any(log.with_suffix("").glob(f"checkpoints/*-step-{steps[-1]}"))


def trunks(runs):
    """From how many checkpoints the branches of each seed went on; nothing was set aside."""
    assert not [*runs.glob("*.broken-*")]
    found = {}
    for path in runs.glob("*-from=*/meta.json"):
        meta = json.loads(path.read_text())
        origin = meta["parent"]
        found.setdefault(meta["seed"], set()).add((origin["folder"], origin["checksum"]))
    return {seed: len(origins) for seed, origins in found.items()}
