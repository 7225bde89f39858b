"""What cannot be forked is refused with the reason, and leaves nothing behind."""

import errno
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from helpers.runs import config, lines, run

from curious_replay.durable import checksum
from curious_replay.replay.saves import manifest
from curious_replay.run import fork, fork_run, load_config
from curious_replay.run.record import checkpoint_files
from curious_replay.run.record.checkpoint import CheckpointError, Checkpoints
from curious_replay.run.record.record_files import LOCK, DamagedError, LockedError
from curious_replay.run.settings.allowed import CHANGEABLE, FORKABLE

HOLD = """
import fcntl, sys
file = open(sys.argv[1], "ab")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("refused") / "parent"
    made = config(
        "toy/two-rooms",
        env={"length": 11, "schedule": ((0, "empty"), (30, "object"), (500, "empty"))},
        train={"steps": 100}, record={"keep_at": (40,)},
    )  # fmt: skip
    run(made, folder)
    return folder


@pytest.fixture
def copy(parent, tmp_path):
    shutil.copytree(parent, tmp_path / "parent")
    return tmp_path / "parent"


def refused(parent, folder, error=ValueError, match="", **kwargs):
    """Forking fails with a message; beside the folder of the fork nothing is new."""
    folder.parent.mkdir(exist_ok=True)
    before = {path: path.stat().st_mtime_ns for path in parent.rglob("*")}
    beside = sorted(folder.parent.iterdir())
    with pytest.raises(error, match=match):
        fork(parent, logdir=folder, **kwargs)
    assert sorted(folder.parent.iterdir()) == beside
    assert {path: path.stat().st_mtime_ns for path in parent.rglob("*")} == before


MAY_NOT = {
    "env.num_envs": 2, "env.length": 7, "env.image_size": 64, "env.room": 5,
    "agent.fail_at": 3, "train.batch_size": 3, "train.batch_length": 3, "train.prefill": 7,
    "train.pretrain": 7, "replay.capacity": 77, "replay.window": "first",
    "replay.cross_episodes": False,
}  # fmt: skip


@pytest.mark.parametrize("name", MAY_NOT)
def test_settings_that_may_not_differ(name, parent, tmp_path):
    option = "--" + name.replace("_", "-")
    said = rf"{option} is .* cannot be {MAY_NOT[name]} in a fork of it: leave it out. What may"
    refused(parent, tmp_path / "a" / "b", match=said, at=40, settings={name: MAY_NOT[name]})


@pytest.mark.parametrize("change", [{"seed": 5}, {"env": "toy/count"}, {"scale": "mini"}])
def test_a_fork_is_of_the_same_seed_world_and_scale(change, parent, tmp_path):
    before = load_config(parent)
    (name, value), *_ = change.items()
    if name == "seed":
        other = replace(before, seed=value)
    elif name == "env":
        other = replace(config(value), record=before.record)
    else:
        other = replace(before, choice=replace(before.choice, scale=value))
    with pytest.raises(ValueError, match=f"--{name} is .* cannot be {value} in a fork of it"):
        fork_run(parent, tmp_path / "fork", other, 40)
    assert not list(tmp_path.iterdir())


def test_what_may_differ_is_one_list():
    assert set(FORKABLE) - set(CHANGEABLE) == {
        "--replay", "--replay.*", "--train.ratio", "--agent.*lr"
    }  # fmt: skip


def test_what_is_past_is_not_waited_for(parent, tmp_path):
    folder = tmp_path / "a" / "b"
    refused(parent, folder, match="the checkpoint is of step 100: --train.steps must be more")
    late = "--record.keep-at 20: the checkpoint is of step 40"
    refused(parent, folder, match=late, at=40, settings={"record.keep_at": (20, 40, 60)})
    never = "--replay.clear-at-change 1 would never come: at the checkpoint the world had changed 1"
    refused(parent, folder, match=never, at=40, settings={"replay.clear_at_change": 1})
    made = fork(parent, logdir=folder, at=40, settings={"replay.clear_at_change": 2})
    assert made.replay.clear_at_change == 2


def test_a_step_without_a_checkpoint(parent, tmp_path):
    said = r"no checkpoint of step 41; there are those of 40 \(kept\), 50, 100"
    refused(parent, tmp_path / "fork", CheckpointError, said, at=41)


def test_what_is_no_run(tmp_path, parent):
    (tmp_path / "empty").mkdir()
    for name in ("empty", "nowhere"):
        refused(tmp_path / name, tmp_path / "fork", match=f"{name} holds no run: it has no config")
    shutil.copytree(parent, tmp_path / "none")
    shutil.rmtree(tmp_path / "none" / "checkpoints")
    refused(tmp_path / "none", tmp_path / "fork", match="none/checkpoints has no checkpoint")


def test_a_folder_that_is_taken(parent, copy, tmp_path):
    folder = tmp_path / "taken"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    refused(parent, folder, match="taken must be a new or empty folder", at=40)
    (tmp_path / "file").write_text("mine")
    refused(parent, tmp_path / "file", match="file must be a new or empty folder", at=40)
    before = lines(copy)
    refused(parent, copy, match="parent holds a run already: `curious train --logdir", at=40)
    refused(parent, parent / "inside", match="lies in the run that it would be a fork of", at=40)
    assert lines(copy) == before
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_an_empty_folder_is_used(parent, tmp_path):
    (tmp_path / "fork").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "fork")
    made = fork(parent, logdir=tmp_path / "link", at=40)
    assert run(made, tmp_path / "link", resume=True).finished
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fork", "link"]


def flip(path):
    content = bytearray(path.read_bytes())
    for part in (1, 2, 3):
        content[len(content) * part // 4] ^= 4
    path.unlink()
    path.write_bytes(content)


FILES = (
    *checkpoint_files.FILES, "manifest.json", "replay/replay.json", "replay/save-*/state.npz",
    "replay/save-*/chunk-0000-00000000.bin",
)  # fmt: skip


@pytest.mark.parametrize("storage", ["memory", "disk"])
@pytest.mark.parametrize("damage", [flip, os.unlink])
@pytest.mark.parametrize("name", FILES)
def test_damage_is_named(name, damage, storage, copy, tmp_path):
    path = Checkpoints(copy / "checkpoints").at(40)
    (file,) = path.glob(name)
    damage(file)
    said = "|".join((file.name, "has changed", "damaged", "is missing", "no replay.json"))
    refused(copy, tmp_path / "fork", match=said, at=40, settings={"replay.storage": storage})
    made = fork(copy, logdir=tmp_path / "fork", settings={"train.steps": 110})  # another is whole
    assert run(made, tmp_path / "fork", resume=True).finished


def test_lost_lines_are_named(copy, tmp_path):
    for name in ("metrics.jsonl", "episodes.jsonl"):
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content[:50])
        refused(copy, tmp_path / "fork", DamagedError, f"{name} is damaged: it has 50 bytes", at=40)
        (copy / name).write_bytes(content)
    (copy / "meta.json").write_text("{}")
    refused(copy, tmp_path / "fork", DamagedError, r"meta.json, resumes", at=40)


def test_strange_files_are_refused(copy, tmp_path):
    (copy / "metrics.jsonl").rename(tmp_path / "elsewhere")
    (copy / "metrics.jsonl").symlink_to(tmp_path / "elsewhere")
    refused(copy, tmp_path / "fork", match="metrics.jsonl is a symbolic link", at=40)
    (copy / "metrics.jsonl").unlink()
    os.mkfifo(copy / "metrics.jsonl")
    refused(copy, tmp_path / "fork", match="metrics.jsonl must be a file", at=40)


def test_videos_and_snapshots_that_are_links_stay_behind(copy, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (copy / "videos" / "evaluation-000000010.mp4").symlink_to(secret)
    (copy / "snapshots").mkdir(exist_ok=True)
    (copy / "snapshots" / "000000010.npz").symlink_to(secret)
    (copy / "snapshots" / "notes.npz").write_text("mine")
    fork(copy, logdir=tmp_path / "fork", at=40)
    assert not list((tmp_path / "fork").glob("videos/*"))
    assert not list((tmp_path / "fork").glob("snapshots/*"))


def change(path, edit):
    content = json.loads(path.read_text())
    edit(content)
    path.write_text(json.dumps(content))


def test_runs_of_a_newer_version(copy, tmp_path):
    """Each says so in its own way, and the version is named where it is known."""
    folder = tmp_path / "fork"
    change(copy / "meta.json", lambda meta: meta["versions"].update(curious_replay="9.1"))
    change(copy / "config.json", lambda values: values["train"].update(dreams=5))
    refused(copy, folder, match="unknown setting train.dreams.* made by version '9.1', this is '")
    change(copy / "config.json", lambda values: values["train"].pop("dreams"))
    path = Checkpoints(copy / "checkpoints").at(40)

    def newer(content):
        content["format"] = "curious-replay checkpoint 9"
        content.pop("crc32")
        content["crc32"] = checksum(content)

    before = (path / "manifest.json").read_text()
    change(path / "manifest.json", newer)
    refused(copy, folder, match="has the format 'curious-replay checkpoint 9', not", at=40)
    (path / "manifest.json").write_text(before)

    def newer_replay(whole):
        whole["content"]["format"] = "curious-replay buffer 9"
        whole["crc32"] = manifest.checksum(whole["content"])

    change(path / "replay" / "replay.json", newer_replay)
    refused(
        copy, folder, match="has the format 'curious-replay buffer 9'; this version reads", at=40
    )


def test_a_state_that_does_not_fit(copy, tmp_path):
    path = Checkpoints(copy / "checkpoints").at(40)
    saved = checkpoint_files.read(path)
    for name in ("changes", "learner", "ratio"):
        state = {key: value for key, value in saved.state.items() if key != name}
        checkpoint_files.write(path, saved.step, state, saved.agent, saved.policy)
        more = {"train.ratio": 8.0, "replay.alpha": 0.5}
        refused(copy, tmp_path / "fork", CheckpointError, f"not fit.*KeyError: '{name}'", at=40,
                settings=more)  # fmt: skip


def test_a_run_in_progress_is_forked_where_it_keeps_a_checkpoint(copy, tmp_path):
    command = [sys.executable, "-c", HOLD, str(copy / LOCK)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == b"held\n"
        said = r"being written to.*: wait for its end, or fork --at a step of .*keep-at \(40\)"
        more = {"train.steps": 110}
        refused(copy, tmp_path / "fork", LockedError, said, settings=more)
        refused(copy, tmp_path / "fork", LockedError, said, settings=more, at=50)
        made = fork(copy, logdir=tmp_path / "fork", at=40)
        other.stdin.close()
    assert run(made, tmp_path / "fork", resume=True).finished
    fork(copy, logdir=tmp_path / "later", settings=more)


def test_a_folder_that_may_only_be_read_is_forked(copy, tmp_path, monkeypatch):
    """Nothing of the parent is opened for writing."""
    real, opened = os.open, []

    def watch(path, flags, *args, **kwargs):
        opened.append((str(path), flags))
        return real(path, flags, *args, **kwargs)

    monkeypatch.setattr(os, "open", watch)
    writes = []

    def audit(event, args):
        if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
            writes.append(str(args[0]))

    sys.addaudithook(audit)
    fork(copy, logdir=tmp_path / "fork", settings={"train.steps": 110})
    assert not [path for path in writes if path.startswith(f"{copy}/")]
    assert not [path for path, flags in opened if path.startswith(f"{copy}/") and flags & 3]


def test_a_full_disk_leaves_nothing(parent, tmp_path, monkeypatch):
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) > number:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    for number in (*range(12), 10**6):
        calls.clear()
        if number < 12:
            refused(parent, tmp_path / "fork", OSError, "No space left", at=40)
        else:
            fork(parent, logdir=tmp_path / "fork", at=40)
    assert Path(tmp_path / "fork" / "config.json").exists()
    assert len(calls) > 12
