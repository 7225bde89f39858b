"""What is fuzzed: for each kind of file, how a valid one is made, and how it is read."""

import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from curious_replay.agents.blocks import perceptual
from curious_replay.analysis import load, snapshots, stored
from curious_replay.analysis.lines import read_table
from curious_replay.envs.landscape import FolderBackgrounds
from curious_replay.experiments.results import MeasureResult, Results, Row
from curious_replay.replay import Curious, Mixture, ReplayBuffer, SavedBuffer, TemporalDifference
from curious_replay.replay import manifest as replay_manifest
from curious_replay.replay.fields import Layout
from curious_replay.replay.storage import chunk_name, field_offset
from curious_replay.run import Choice, load_config, preset
from curious_replay.run import checkpoint as checkpoints
from curious_replay.run import record as run_record
from curious_replay.run import snapshots as run_snapshots
from curious_replay.run.changes import Changes
from curious_replay.run.files import read_lines, to_json, write_json
from curious_replay.run.record import Record
from curious_replay.untrusted import read_json

Read = Callable[[Path], Any]
FLAGS = ("is_first", "is_last", "is_terminal")


@dataclass(frozen=True)
class Target:
    """One reader."""

    make: tuple[Callable[[Path], None], ...]
    """Each writes valid files into a folder."""
    read: Read
    """Reads all that is in the folder; what this raises is judged."""
    repair: Callable[[Path], None] | None = None
    """Makes checksums right again, as somebody would who means harm."""
    writes: bool = False
    """Whether reading changes files."""
    share: float = 1.0
    """Part of all inputs, relative to the others: what reads slowly gets fewer."""


def small_buffer(mixed: bool = False, window: Any = "last") -> ReplayBuffer:
    """A full ring of two environments, with a few updates and episodes."""
    rule = Mixture(Curious(), TemporalDifference(), 0.25) if mixed else Curious()
    buffer = ReplayBuffer(40, 4, 2, rule, window, cross_episodes=not mixed, seed=3)
    for t in range(30):
        flags = {name: np.array([t % 7 == i, t % 9 == i]) for i, name in enumerate(FLAGS)}
        image = np.full((2, 2, 2, 3), t, np.uint8)
        buffer.add({**flags, "image": image, "log_pos": np.full((2, 3), t, np.float32)})
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


def _save_buffer(folder: Path, **kind: Any) -> None:
    small_buffer(**kind).save(folder / "replay")


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
        whole["crc32"] = replay_manifest.checksum(content)
        path.write_text(json.dumps(whole))


def _read_saved_buffer(folder: Path) -> None:
    saved = SavedBuffer(folder / "replay")
    for name in saved.fields:
        saved.field(name)
    if len(saved) and saved.fields:
        saved.rows(saved.fields[0], [0, len(saved) - 1])


def _save_checkpoint(folder: Path) -> None:
    state = {
        "counters": {"frame": 60, "step": 60, "update": 3, "episode": 2},
        "record": {"frame": 60, "line": 3, "bytes": {}},
        "nested": {"tuple": (1, 2.5, None), "pairs": {1: "a"}, "scalar": np.float32(3)},
        "arrays": [np.arange(5), np.ones((2, 3), bool), np.array(["a", "bc"])],
    }
    agent = {"layer.weight": torch.ones(3, 4), "layer.bias": torch.zeros(4)}
    policy = {"generator": torch.zeros(16, dtype=torch.uint8)}
    checkpoints.Checkpoints(folder / "checkpoints").save(60, state, agent, policy, small_buffer())


def _only_checkpoint(folder: Path) -> Path:
    return folder / "checkpoints" / "000001-step-60"


def repair_checkpoint(folder: Path) -> None:
    """Sizes and checksums in the manifest."""
    place = _only_checkpoint(folder)
    path = place / checkpoints.MANIFEST
    content = json.loads(path.read_text())
    for name in content["files"]:
        content["files"][name] = checkpoints._measure(place / name)
    content.pop("crc32")
    path.write_text(json.dumps({**content, "crc32": checkpoints._checksum(content)}))


def repair_stored(folder: Path) -> None:
    """The replay inside a checkpoint: analyses do not read the checkpoint's manifest."""
    repair_replay(_only_checkpoint(folder))


def write_run(folder: Path) -> None:
    """A run as it is recorded, without training."""
    config = preset(Choice(env="toy/count", scale="debug"), 1)
    with Record.create(folder, config.to_json(), seed=1, tensorboard=False) as record:
        record.remember(schedule=[[0, "before"], [40, "after"]])
        for step in range(0, 100, 10):
            counters = {"frame": step, "step": step, "update": step // 2}
            record.metrics(counters, {"loss/model": 1 / (1 + step), "replay/steps": step})
            values = {"mode": "train", "phase": "before" if step < 40 else "after"}
            record.episode(counters, {**values, "return": float(step), "length": 10})
            record.probe(counters, {"scene": 1, "ahead": 2, "mse": 0.1, "mse_object": 0.2})
            record.speed(counters, {"steps_per_second": 9.5})
        write_json(folder / "position.json", record.position())


def _read_run(folder: Path) -> None:
    run = load.load_run(folder)
    for name in ("name", "seed", "steps_done", "frames_done", "finished", "complete", "hours",
                 "changes", "first_change", "undone", "checkpoints"):  # fmt: skip
        getattr(run, name)
    for table in (run.metrics, run.episodes, run.speed, run.probes, run.played("eval")):
        _read_all(table)
    load.group([run])


def _read_all(table: Any) -> None:
    for name in ("step", "return", "mode", *list(table)[:8]):
        assert len(table[name]) == table.rows
        table.last(name)
        table.where(np.arange(table.rows) % 2 == 0)[name]


def _resume_record(folder: Path) -> None:
    position = read_json(folder / "position.json")
    run_record.describe = dict  # which would ask git for the commit of the code
    Record.open(folder, position=position, tensorboard=False).close()


def _write_snapshot(folder: Path) -> None:
    changes = Changes(2)
    changes.see(["only", "only"])
    counters = {"frame": 60, "step": 60, "update": 3}
    content = run_snapshots.take(small_buffer(), changes, counters, 1000)
    run_snapshots.write(folder, content)


def _read_snapshot(folder: Path) -> None:
    found = snapshots.snapshots(load.Run(folder, {}))
    for each in found:
        assert len(each.chance) == len(each.age) == len(each.ids)


def _write_pictures(folder: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 255, (8, 8, 3), np.uint8)
    for name in ("a.png", "b.jpg"):
        Image.fromarray(pixels).save(folder / name)


WANTED = {"features.0.weight": (4, 3), "features.0.bias": (4,)}


def _write_weights(name: str) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        tensors = {key: torch.ones(shape) for key, shape in WANTED.items()}
        if name.endswith(".safetensors"):
            save_file(tensors, folder / name)
        else:
            torch.save(tensors, folder / name, _use_new_zipfile_serialization="old" not in name)

    return make


def _read_weights(name: str) -> Read:
    cpu = torch.device("cpu")
    return lambda folder: perceptual._read("--agent.vgg", str(folder / name), WANTED, cpu)


def _write_results(folder: Path) -> None:
    rows = [Row("task", method, [0, 1], [0.5, None], "1 ± 2") for method in ("a", "b")]
    measures = [MeasureResult("score", False, rows)]
    made = {"command": "x", "hours": 1.0}
    found = Results("name", "Table 1", "Title", "mini", "held", "It held.", measures, made)
    (folder / "results.json").write_text(to_json(found.to_json()))


def _read_results(folder: Path) -> None:
    path = folder / "results.json"
    Results.from_json(read_json(path), str(path)).tables()


def _write_config(**choice: str) -> Callable[[Path], None]:
    made = preset(Choice(scale="debug", **choice), 0)
    return lambda folder: write_json(folder / "config.json", made.to_json())


REPLAYS = (
    lambda folder: _save_buffer(folder),
    lambda folder: _save_buffer(folder, mixed=True, window="first"),
)
TARGETS = {
    "config": Target(
        (
            _write_config(env="toy/two-rooms"),
            _write_config(env="object-interaction", agent="iris", replay="td+adversarial"),
            _write_config(env="CartPole-v1", agent="dreamerv2", replay="count"),
        ),
        load_config, share=2,
    ),
    "lines": Target((write_run,), lambda folder: read_lines(folder / "metrics.jsonl"), share=2),
    "table": Target(
        (write_run,), lambda folder: _read_all(read_table(folder / "episodes.jsonl")), share=2
    ),
    "run": Target((write_run,), _read_run),
    "record": Target((write_run,), _resume_record, writes=True, share=0.2),
    "snapshot": Target((_write_snapshot,), _read_snapshot, share=2),
    "replay": Target(
        REPLAYS, lambda folder: use_buffer(ReplayBuffer.load(folder / "replay", directory=None)),
        repair_replay, share=1,
    ),
    "mapped": Target(
        REPLAYS,
        lambda folder: use_buffer(ReplayBuffer.load(folder / "replay", directory=folder / "maps")),
        repair_replay, share=0.2,
    ),
    "saved-buffer": Target(REPLAYS, _read_saved_buffer, repair_replay),
    "checkpoint": Target(
        (_save_checkpoint,),
        lambda folder: checkpoints.Checkpoints(folder / "checkpoints").read(_only_checkpoint(folder)),
        repair_checkpoint,
    ),
    "stored": Target(
        (_save_checkpoint,), lambda folder: stored.read(_only_checkpoint(folder)), repair_stored
    ),
    "picture": Target(
        (_write_pictures,), lambda folder: FolderBackgrounds(folder, 8, ["a.png", "b.jpg"]).pool()
    ),
    "safetensors": Target((_write_weights("a.safetensors"),), _read_weights("a.safetensors"), share=2),
    "torch": Target((_write_weights("a.pth"),), _read_weights("a.pth"), share=0.2),
    "torch-old": Target((_write_weights("old.pth"),), _read_weights("old.pth"), share=0.2),
    "results": Target((_write_results,), _read_results, share=0.5),
}  # fmt: skip
