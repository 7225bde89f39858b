"""Saved buffers and checkpoints, valid ones, and how to make their checksums right again."""

import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import torch

from curious_replay.durable import checksum
from curious_replay.replay import Curious, Mixture, ReplayBuffer, TemporalDifference
from curious_replay.replay.fields import FLAGS, Layout
from curious_replay.replay.saves import manifest as replay_manifest
from curious_replay.replay.storage import chunk_name, field_offset
from curious_replay.run.record import checkpoint_files
from curious_replay.run.record.checkpoint import Checkpoints


def small_buffer(mixed: bool = False, window: Any = "last") -> ReplayBuffer:
    """A full ring of two environments, with a few updates and episodes."""
    rule = Mixture(Curious(), TemporalDifference(), 0.25) if mixed else Curious()
    buffer = ReplayBuffer(40, 4, 2, rule, window, cross_episodes=not mixed, seed=3)
    for t in range(30):
        at = [np.array([t % 7 == i, t % 9 == i]) for i in range(3)]
        flags = dict(zip(FLAGS, (at[0], at[1] | at[2], at[2]), strict=True))
        image = np.full((2, 2, 2, 3), t, np.uint8)
        when = {"log_frame": np.full(2, 2 * t), "log_phase": np.zeros(2, np.int32)}
        place = {"log_pos": np.full((2, 3), t, np.float32)}
        buffer.add({**flags, "image": image, **place, **when})
    for _ in range(3):
        batch = buffer.sample(2)
        signals = {name: np.ones(batch.ids.shape) for name in ("model", "td")}
        buffer.update(batch.ids, signals)
    return buffer


def use_buffer(buffer: ReplayBuffer) -> None:
    """What a loop does next: wrong numbers in a buffer show here, as a crash perhaps."""
    if buffer.ready:
        batch = buffer.sample(4)
        signals = {name: np.ones(batch.ids.shape) for name in ("model", "td", "kl")}
        signals |= {name: np.ones(batch.ids.shape) for name in buffer.sampler.signals}
        buffer.update(batch.ids, signals)
    if buffer.storage is not None:
        fields = buffer.storage.layout.fields
        step = {f.name: np.zeros((buffer.num_envs, *f.shape), f.dtype) for f in fields}
        if all("/" not in name for name in step):
            buffer.add(step)
    buffer.stats()


def repair_replay(folder: Path) -> None:
    """Checksums of chunks and manifest, as far as the manifest makes sense."""
    path = folder / "replay" / replay_manifest.MANIFEST
    whole = json.loads(path.read_text())
    content = whole["content"]
    try:
        layout, rows = Layout.from_json(content["layout"]), content["rows"]
        place = path.parent / replay_manifest.save_name(content["number"])
        for chunk in content["chunks"]:
            data = (place / chunk_name(chunk["env"], chunk["number"])).read_bytes()
            for i, field in enumerate(layout.fields):
                start = field_offset(layout, rows, i, chunk["start"])
                size = field.nbytes * (chunk["stop"] - chunk["start"])
                chunk["crc32"][i] = zlib.crc32(data[start : start + size])
    finally:
        whole["crc32"] = checksum(content)
        path.write_text(json.dumps(whole))


def save_checkpoint(folder: Path) -> None:
    state = {
        "counters": {"frame": 60, "step": 60, "update": 3, "episode": 2},
        "record": {"frame": 60, "line": 3, "bytes": {}},
        "nested": {"tuple": (1, 2.5, None), "pairs": {1: "a"}, "scalar": np.float32(3)},
        "arrays": [np.arange(5), np.ones((2, 3), bool), np.array(["a", "bc"])],
    }
    agent = {"layer.weight": torch.ones(3, 4), "layer.bias": torch.zeros(4)}
    policy = {"generator": torch.zeros(16, dtype=torch.uint8)}
    Checkpoints(folder / "checkpoints").save(60, state, agent, policy, small_buffer())


def only_checkpoint(folder: Path) -> Path:
    return folder / "checkpoints" / "000001-step-60"


def repair_checkpoint(folder: Path) -> None:
    """Sizes and checksums in the manifest."""
    repair_manifest(only_checkpoint(folder))


def repair_manifest(place: Path) -> None:
    """The same for any checkpoint."""
    path = place / checkpoint_files.MANIFEST
    content = json.loads(path.read_text())
    for name in content["files"]:
        content["files"][name] = checkpoint_files._measure(place / name)
    content.pop("crc32")
    path.write_text(json.dumps({**content, "crc32": checksum(content)}))
