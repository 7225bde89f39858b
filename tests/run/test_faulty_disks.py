"""Disks that are full, folders that may not be written to, checkpoints that are damaged."""

import ctypes
import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.runs import config, lines, run
from safetensors import SafetensorError

from curious_replay import cli
from curious_replay.run.record import checkpoint_files
from curious_replay.run.record.checkpoint import CheckpointError, Checkpoints

HERE = Path(__file__).parent
PARTS = 7
SETTINGS = config(
    "toy/two-rooms", env={"length": 11}, train={"steps": 60, "save_every": 10},
    record={"tensorboard": True, "snapshot_every": 20},
)  # fmt: skip
STEPS = ["--agent", "fake", "--scale", "debug", "--env", "toy/count", "--train.steps", "60"]
SAYS_FULL = "Error while serializing: I/O error: No space left on device (os error 28)"


def fail_at(patch, number, error):
    """Let the disk be full from this write that must reach it on; returns how many there were."""
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) > number:
            raise OSError(error, os.strerror(error))

    patch.setattr(os, "fsync", fsync)
    return calls


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A whole run, and how many writes of it must reach the disk."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with pytest.MonkeyPatch.context() as patch:
        writes = fail_at(patch, 10**9, errno.ENOSPC)
        run(SETTINGS, folder)
    return folder, len(writes)


@pytest.fixture
def whole(undisturbed):
    return undisturbed[0]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_run_goes_on_exactly_after_the_disk_was_full(part, undisturbed, tmp_path, monkeypatch):
    whole, writes = undisturbed
    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        fail_at(patch, writes * part // PARTS, errno.ENOSPC)
        run(SETTINGS, tmp_path / "run")
    assert not list(tmp_path.glob("run/checkpoints/.new-*"))  # it would take room for nothing
    assert run(SETTINGS, tmp_path / "run", resume=True).finished
    assert lines(tmp_path / "run") == lines(whole)


def test_weights_that_find_no_room_are_an_error_of_the_disk(tmp_path, monkeypatch):
    def save_file(tensors, path):
        raise SafetensorError(SAYS_FULL)

    monkeypatch.setattr(checkpoint_files, "save_file", save_file)
    with pytest.raises(OSError, match=r"No space left on device.*agent.safetensors") as caught:
        run(SETTINGS, tmp_path / "run")
    assert caught.value.errno == errno.ENOSPC
    assert not list((tmp_path / "run/checkpoints").iterdir())


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOSPC, r"the disk of {} is full (.* bytes are free): make room there"),
        (errno.EROFS, r"{} cannot be written to: mend that, or choose another --logdir"),
        (errno.EIO, r"curious: [Errno 5] Input/output error"),
    ],
)
def test_the_command_says_what_to_do_and_how_to_go_on(number, said, tmp_path, capsys, monkeypatch):
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        fail_at(patch, 40, number)
        assert cli.main(["train", *STEPS, "--train.save-every", "5", "--logdir", str(folder)]) == 1
    message = capsys.readouterr().err
    before, _, after = said.format(folder).partition(".*")
    assert before in message and after in message
    assert f"`curious train --logdir {folder} --resume` goes on there" in message
    assert cli.main(["train", *STEPS, "--logdir", str(folder), "--resume"]) == 0


@pytest.mark.slow
def test_a_disk_that_is_really_full(tmp_path):
    script = [sys.executable, str(HERE / "on_a_full_disk.py"), str(tmp_path)]
    done = subprocess.run(
        ["unshare", "--map-root-user", "--mount", *script],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no file system can be mounted here: {done.stderr}")
    assert done.returncode == 0, done.stderr
    assert "is full" in done.stdout and "goes on there" in done.stdout


def drop_power_over_permissions():
    """Root may write anywhere; without these two capabilities it may not."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


@pytest.mark.parametrize("resume", [False, True])
def test_a_folder_that_may_not_be_written_to_is_refused_at_once(resume, tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    logdir = folder if resume else folder / "new"
    if resume:
        assert cli.main(["train", *STEPS, "--logdir", str(folder)]) == 0
    folder.chmod(0o555)
    done = subprocess.run(
        [sys.executable, str(HERE / "fake_cli.py"), "train", *STEPS, "--resume", "--logdir",
         str(logdir)],
        capture_output=True, text=True, check=False, preexec_fn=drop_power_over_permissions,
    )  # fmt: skip
    folder.chmod(0o755)
    assert done.returncode == 2, done.stderr
    assert f"{folder} cannot be written to: choose another --logdir" in done.stderr
    assert resume or not list(folder.iterdir())


def flip(path):
    """Flip three bits: one alone might hit a date in a zip file, which nobody reads."""
    content = bytearray(path.read_bytes())
    for part in (1, 2, 3):
        content[len(content) * part // 4] ^= 4
    path.unlink()  # a file that is shared with another checkpoint stays whole there
    path.write_bytes(content)


FILES = (
    "agent.safetensors", "policy.safetensors", "state.json", "state.npz", "manifest.json",
    "replay/replay.json", "replay/save-*/state.npz", "replay/save-*/chunk-0000-00000000.bin",
)  # fmt: skip


@pytest.mark.parametrize("damage", [flip, Path.unlink])
@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_or_a_missing_file_is_found_and_named(name, damage, whole, tmp_path):
    shutil.copytree(whole / "checkpoints", tmp_path / "checkpoints")
    newest, before = Checkpoints(tmp_path / "checkpoints").all()
    (path,) = newest.glob(name)
    damage(path)
    said = []
    found = Checkpoints(newest.parent).resume(None, SETTINGS.replay.rule(), said.append)
    assert found is not None and found[0].path == before
    assert len(said) == 1
    assert path.name in said[0] and said[0].endswith("going back to the checkpoint before")


def test_damage_to_what_both_checkpoints_share_is_an_error_of_its_own(whole, tmp_path):
    shutil.copytree(whole / "checkpoints", tmp_path / "checkpoints")
    saves = Checkpoints(tmp_path / "checkpoints")
    for path in saves.all():
        flip(next(path.glob("replay/save-*/chunk-0000-00000000.bin")))
    with pytest.raises(CheckpointError, match=r"none of the checkpoints in .* is whole"):
        saves.resume(None, SETTINGS.replay.rule(), lambda text: None)


def test_what_a_kill_after_the_last_save_left_is_removed_by_the_next_start(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "run")
    saves = tmp_path / "run" / "checkpoints"
    newest, before = Checkpoints(saves).all()
    shutil.copytree(before, saves / "000001-step-0")
    shutil.copytree(before, saves / ".new-000000-step-0")
    assert run(SETTINGS, tmp_path / "run", resume=True).finished
    assert sorted(path.name for path in saves.iterdir()) == [before.name, newest.name]
