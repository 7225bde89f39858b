"""What is fuzzed: for each kind of file, how a valid one is made, and how it is read."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from saves import (
    only_checkpoint,
    repair_checkpoint,
    repair_replay,
    save_checkpoint,
    small_buffer,
    use_buffer,
)
from whole_runs import fork_anew, repair_newest, resume, write_assay, write_report, write_trained

from curious_replay.agents.blocks.tokens import perceptual
from curious_replay.agents.blocks.weights import read_tensors
from curious_replay.analysis import load, snapshots, stored
from curious_replay.analysis.lines import read_columns
from curious_replay.envs.drawing.landscape import FolderBackgrounds
from curious_replay.experiments.results import ClaimResult, MeasureResult, Results, Row
from curious_replay.experiments.verdict import Compared
from curious_replay.replay import ReplayBuffer, SavedBuffer
from curious_replay.run import Choice, load_config, preset
from curious_replay.run.record import checkpoint_files
from curious_replay.run.record import record as run_record
from curious_replay.run.record import snapshots as run_snapshots
from curious_replay.run.record.files import read_lines, to_json, write_json
from curious_replay.run.record.record import Record
from curious_replay.untrusted import read_json

Read = Callable[[Path], Any]


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


def _save_buffer(folder: Path, **kind: Any) -> None:
    small_buffer(**kind).save(folder / "replay")


def _read_saved_buffer(folder: Path) -> None:
    saved = SavedBuffer(folder / "replay")
    for name in saved.fields:
        saved.field(name)
    if len(saved) and saved.fields:
        saved.rows(saved.fields[0], [0, len(saved) - 1])


def repair_stored(folder: Path) -> None:
    """The replay inside a checkpoint: analyses do not read the checkpoint's manifest."""
    repair_replay(only_checkpoint(folder))


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
    counters = {"frame": 60, "step": 60, "update": 3}
    content = run_snapshots.take(small_buffer(), ["only"], counters, 1000)
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
    def read(folder: Path) -> None:
        read_tensors(folder / name)  # as a checkpoint does; where weights are named, links are fine
        perceptual._read("vgg", str(folder / name), WANTED, torch.device("cpu"))

    return read


def _write_results(folder: Path) -> None:
    rows = [Row("task", method, [0, 1], [0.5, None], "1 ± 2") for method in ("a", "b")]
    measures = [MeasureResult("score", False, rows)]
    made = {"command": "x", "hours": 1.0}
    compared = Compared("a", "new", "old", 6, 5, 1, 0.5, 0.2, None, 0.06, 0.06, "open")
    claims = [ClaimResult("New is better", "score", "held", "It held.", [compared])]
    found = Results(
        "name", "Table 1", "Title", "mini", "held", "It held.", measures, claims, [made]
    )
    (folder / "results.json").write_text(to_json(found.to_json()))


def _read_results(folder: Path) -> None:
    path = folder / "results.json"
    Results.from_json(read_json(path), str(path)).tables()


def _write_config(**choice: str) -> Callable[[Path], None]:
    made = preset(Choice(scale="debug", **choice), 0)
    return lambda folder: write_json(folder / "config.json", made.to_json())


REPLAYS = (
    _save_buffer,
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
        (write_run,), lambda folder: _read_all(read_columns(folder / "episodes.jsonl")), share=2
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
        (save_checkpoint,),
        lambda folder: checkpoint_files.read(only_checkpoint(folder)),
        repair_checkpoint,
    ),
    "stored": Target(
        (save_checkpoint,), lambda folder: stored.read(only_checkpoint(folder)), repair_stored
    ),
    "picture": Target(
        (_write_pictures,), lambda folder: FolderBackgrounds(folder, 8, ["a.png", "b.jpg"]).pool()
    ),
    "safetensors": Target(
        (_write_weights("a.safetensors"),), _read_weights("a.safetensors"), share=2
    ),
    "torch": Target((_write_weights("a.pth"),), _read_weights("a.pth"), share=0.2),
    "torch-old": Target((_write_weights("old.pth"),), _read_weights("old.pth"), share=0.2),
    "report": Target((write_assay,), write_report, repair_stored, share=0.01),
    "resume": Target((write_trained,), resume, repair_newest, writes=True, share=0.01),
    "fork": Target(
        (lambda folder: write_trained(folder / "run"),), fork_anew,
        lambda folder: repair_newest(folder / "run"), share=0.01,
    ),
    "results": Target((_write_results,), _read_results, share=0.5),
}  # fmt: skip
