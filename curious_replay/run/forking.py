"""Forks: a run that begins where a checkpoint of another one is, and goes on with other settings.

A fork has the parent's agent, optimisers, environments in the middle of their episodes, counters,
random states and stored steps, and its record begins with the parent's lines. With no setting
changed it is the parent as if it had never stopped, byte for byte. Where replay draws differently,
the batch that was drawn ahead is dropped: the first batch that the fork learns from is drawn by its
own rule. Another train ratio counts from the step of the checkpoint.

All of it is written under another name, which becomes the fork's in one step at the end. Files that
are never changed again are shared with the parent by hard links, or copied where there are none, so
that a fork needs nothing of its parent any more.
"""

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from curious_replay import plugins
from curious_replay.durable import sync_folder
from curious_replay.errors import UsageError
from curious_replay.run.loop.changes import Changes
from curious_replay.run.loop.clock import Ratio
from curious_replay.run.record import checkpoint_files
from curious_replay.run.record.checkpoint import Checkpoints
from curious_replay.run.record.checkpoint_files import Saved
from curious_replay.run.record.files import write_json
from curious_replay.run.record.meta import OF_MACHINE, describe, new_id
from curious_replay.run.record.record_files import (
    LOCK,
    LockedError,
    check_reaches,
    locked,
    nobody_writes,
    read_meta,
    refuse_strange_files,
    sizes_at,
)
from curious_replay.run.settings.allowed import FORKABLE, not_allowed
from curious_replay.run.settings.config import Config, differences, load_config
from curious_replay.run.settings.presets import Settings, changed, with_replay
from curious_replay.run_folder import CHECKPOINTS, CONFIG, META, REPLAY, SNAPSHOTS, VIDEOS
from curious_replay.untrusted import folder_itself, open_file

NOT_DRAWN_BY = ("--replay.storage", "--replay.clear-at-change")
"""Settings of replay that no draw depends on."""
_VIDEO = re.compile(r"[\w-]+-(\d{9,})\.(mp4|gif)")


def fork(
    run: str | Path,
    *,
    logdir: str | Path,
    replay: str | None = None,
    at: int | None = None,
    settings: Settings | None = None,
) -> Config:
    """Begin a fork of a run in `logdir`; `train(config, logdir, resume=True)` goes on with it.

    `replay` is another kind of replay, `at` the step of the checkpoint, by default the newest one,
    and `settings` are what else differs: {"train.ratio": 32, "replay.beta": 0.3}.
    """
    before = load_config(run)
    config = changed(with_replay(before, replay or before.choice.replay), settings or {})
    fork_run(Path(run), Path(logdir), config, at)
    return config


def fork_run(parent: Path, folder: Path, config: Config, at: int | None = None) -> None:
    """Begin `folder` as a fork of the run in `parent`, to go on as `config` says.

    It goes on from the checkpoint that is kept for the step `at`, or was made at it; without a step
    from the newest. Afterwards there is a whole run or, if anything goes wrong, nothing: also after
    a kill. UsageError says what would have to be different.
    """
    before = load_config(parent)
    for name, (old, new) in not_allowed(before, config, FORKABLE).items():
        raise UsageError(
            f"{name} is {old} in {parent} and cannot be {new} in a fork of it: leave it out. What "
            f"may differ: {', '.join(FORKABLE)}"
        )
    if folder.resolve().is_relative_to(parent.resolve()):
        raise UsageError(f"{folder} lies in the run that it would be a fork of: choose another")
    _refuse_taken(folder)
    refuse_strange_files(parent)
    with _checkpoint(parent, at) as path:
        saved = checkpoint_files.read(path)
        _refuse_past(saved, before, config)
        with saved.put_to_use():
            state = _state(saved, before, config)
            frame = int(state["counters"]["frame"])
        with _taking_shape(folder) as new:
            _write_checkpoint(new, saved, state, config)
            _write_record(new, parent, saved, frame)
            _write_origin(new, parent, saved, frame, differences(before, config))
            write_json(new / CONFIG, config.to_json())


@contextmanager
def _checkpoint(parent: Path, at: int | None) -> Iterator[Path]:
    """Yield the checkpoint to begin from, which stays as it is meanwhile.

    Of a run in progress only those that it keeps do.
    """
    checkpoints = Checkpoints(parent / CHECKPOINTS)
    path = checkpoints.at(at)
    kept = bool(checkpoint_files.kept_at(path))
    try:
        with nullcontext() if kept else nobody_writes(parent):
            yield path if kept else checkpoints.at(at)
    except LockedError as error:
        if kept:
            raise
        steps = {step for each in checkpoints.all() for step in checkpoint_files.kept_at(each)}
        told = ", ".join(map(str, sorted(steps))) or "there are none yet"
        raise LockedError(
            f"{error}: wait for its end, or fork --at a step of its --record.keep-at ({told})"
        ) from error


@contextmanager
def _taking_shape(folder: Path) -> Iterator[Path]:
    """Yield a folder to write to, which becomes `folder` at the end, or is gone.

    What a killed fork left of it is removed first.
    """
    folder = folder.resolve()
    new = folder.with_name(f".{folder.name}.fork")
    new.mkdir(parents=True, exist_ok=True)
    with locked(new) as lock:
        try:
            _refuse_taken(folder)
            for left in new.iterdir():
                if left.is_dir() and not left.is_symlink():
                    shutil.rmtree(left)
                elif left.name != LOCK:
                    left.unlink()
            yield new
            sync_folder(new)
            new.rename(folder)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        lock.close()
    sync_folder(folder.parent)


def _refuse_taken(folder: Path) -> None:
    if (folder / CONFIG).exists():
        raise UsageError(
            f"{folder} holds a run already: `{plugins.resuming(folder)}` goes on with it; for "
            "another, choose another --logdir"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} must be a new or empty folder: choose another --logdir")


def _refuse_past(saved: Saved, before: Config, config: Config) -> None:
    """Refuse to wait for what has happened before the checkpoint."""
    step = saved.step
    if step >= config.train.steps:
        raise UsageError(
            f"the checkpoint is of step {step:,}: --train.steps must be more for a fork to go on, "
            f"got {config.train.steps:,}"
        )
    late = {each for each in config.record.keep_at if each <= step} - {*before.record.keep_at}
    if late:
        raise UsageError(f"--record.keep-at {min(late)}: the checkpoint is of step {step:,}")
    changes, clear = Changes(config.env.num_envs), config.replay.clear_at_change
    with saved.put_to_use():
        changes.set_state(saved.state["changes"])
        passed = changes.complete
    if clear != before.replay.clear_at_change and 0 < clear <= passed:
        raise UsageError(
            f"--replay.clear-at-change {clear} would never come: at the checkpoint the world had "
            f"changed {passed} times"
        )


def _state(saved: Saved, before: Config, config: Config) -> dict[str, Any]:
    """Return the state that the fork begins with.

    It is what the parent had, but for what other settings make void.
    """
    state, names = dict(saved.state), differences(before, config)
    if any(name.startswith("--replay") and name not in NOT_DRAWN_BY for name in names):
        state["learner"] = {**state["learner"], "next": None, "failed": None}
    if "--train.ratio" in names:
        ratio = Ratio(*before.updates_per_step, first=before.train.pretrain)
        ratio.set_state(state["ratio"])
        state["ratio"] = ratio.state_for_another(saved.step)
    return state


def _write_checkpoint(new: Path, saved: Saved, state: dict[str, Any], config: Config) -> None:
    """Write the fork's one checkpoint: the parent's, with the priorities of its own rule."""
    path = new / CHECKPOINTS / saved.path.name
    path.mkdir(parents=True)
    directory = new / "replay" if config.replay.storage == "disk" else None
    replay = saved.load_replay(directory, config.replay.rule())
    replay.repeats = config.replay.repeats
    checkpoint_files.link_replay(saved.path / REPLAY, path / REPLAY, ours=False)
    replay.save(path / REPLAY)
    del replay
    shutil.rmtree(new / "replay", ignore_errors=True)  # the run makes its own
    checkpoint_files.write(path, saved.step, state, saved.agent, saved.policy)
    sync_folder(path.parent)


def _write_record(new: Path, parent: Path, saved: Saved, frame: int) -> None:
    """Write lines, snapshots and videos up to the checkpoint."""
    for name, size in sizes_at(parent, saved.state.get("record", {})).items():
        check_reaches(parent / name, size)
        if size:
            _copy(parent / name, new / name, size)
    for path in _files(parent / SNAPSHOTS):
        if path.suffix == ".npz" and path.stem.isdecimal() and int(path.stem) <= saved.step:
            _share(path, new / SNAPSHOTS)
    for path in _files(parent / VIDEOS):
        video = _VIDEO.fullmatch(path.name)
        if video is not None and int(video[1]) <= frame:
            _share(path, new / VIDEOS)


def _write_origin(
    new: Path, parent: Path, saved: Saved, frame: int, changed: Mapping[str, Any]
) -> None:
    """Write meta.json.

    It has what the parent knew of itself, who begins the fork, and what it is a fork of. How the
    fork computes, and for W&B which run it is, is yet to be known.
    """
    meta = {n: value for n, value in read_meta(parent).items() if n not in ("wandb", *OF_MACHINE)}
    origin = {
        "id": meta.get("id"),
        "folder": str(parent.resolve()),
        "step": saved.step,
        "frame": frame,
        "checkpoint": saved.path.name,
        "checksum": checkpoint_files.digest(saved.path),
        "changed": changed,
        "parent": meta.get("parent"),
    }
    own = {"id": new_id(), "resumes": [], "parent": origin}
    write_json(new / META, {**meta, **describe(), **own})


def _files(folder: Path) -> list[Path]:
    """Return the files in a folder, without links, in order; none if there is no folder."""
    if not folder_itself(folder).is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.is_symlink())


def _share(path: Path, folder: Path) -> None:
    """Let a folder have a file that is never changed: by a link, or as a copy."""
    folder.mkdir(exist_ok=True)
    try:
        os.link(path, folder / path.name)
    except OSError:
        _copy(path, folder / path.name, path.stat().st_size)


def _copy(source: Path, target: Path, size: int) -> None:
    """Copy the first bytes of a file, and make sure that they are on disk."""
    with open_file(source) as file, target.open("wb") as out:
        while size > 0 and (block := file.read(min(size, 2**20))):
            size -= out.write(block)
        out.flush()
        os.fsync(out.fileno())
