"""Kills at random moments, during saves too."""

import json
import multiprocessing
import random
import signal
import sys
import time

import pytest

pytestmark = pytest.mark.slow

KILLS = 20
STEPS = 1000


def _train(folder, save_every, path):
    """What the process that is to be killed does."""
    sys.path[:] = path
    from runs import config, run  # noqa: PLC0415  # only now is it on the path

    settings = config(
        "toy/two-rooms",
        env={"length": 11, "num_envs": 2},
        train={"steps": STEPS, "save_every": save_every, "log_every": 10},
        replay={"capacity": 400},
    )
    run(settings, folder, resume=True)


def start(folder, save_every):
    context = multiprocessing.get_context("forkserver")
    # What all of them need is imported once.
    context.set_forkserver_preload(
        ["curious_replay.run", "torch._dynamo", "torch.distributed.tensor"]
    )
    process = context.Process(target=_train, args=(folder, save_every, sys.path))
    process.start()
    return process


def steps(path):
    return [json.loads(line)["step"] for line in path.read_text().splitlines()]


def wait_for_a_save(folder, process, seen):
    """Return when there is a checkpoint that is not in `seen`, or the process has ended."""
    while process.is_alive():
        found = {p.name for p in (folder / "checkpoints").glob("0*")} if folder.exists() else set()
        if found - seen:
            return found
        time.sleep(0.01)
    return seen


def test_twenty_kills_lose_and_double_nothing(tmp_path):
    rng = random.Random(0)
    whole = start(tmp_path / "whole", 0)
    killed = tmp_path / "killed"
    seen, saves_cut = set(), 0
    for number in range(KILLS):
        process = start(killed, 5)
        for _ in range(1 + number % 2):
            seen = wait_for_a_save(killed, process, seen)
        time.sleep(rng.random() * 0.05)  # most of the time is spent saving: some are cut short
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        saves_cut += bool(list((killed / "checkpoints").glob(".new-*")))
        recorded = steps(killed / "metrics.jsonl")
        assert recorded == sorted(set(recorded))
    assert saves_cut > 0
    process = start(killed, 0)
    for each in (process, whole):
        each.join()
        assert each.exitcode == 0
    for name in ("metrics.jsonl", "episodes.jsonl"):
        assert (killed / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert steps(killed / "metrics.jsonl") == list(range(10, STEPS + 1, 10))
