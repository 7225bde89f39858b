"""Snapshots: what replay held at a moment, small enough to keep many of them.

A checkpoint has everything, but only the last two stay. `snapshots/<step>.npz` (nine digits) has
what analyses of replay ask for, without pictures:

    ids         int64 [N]       of stored steps, in the order of `ReplayBuffer.ids()`: all of them,
                                or as many, evenly spread, as a snapshot may keep
    visits      int32 [N]       how often each was trained on
    priorities  float64 [R, N]  under each rule, two in a mixture: 0 where it cannot be drawn
    terms       float64 [K, N]  what the priorities are the sum of, by `term_names` [K]; those of
                                the second rule begin with second/
    phase       int32 [N]       in which phase it was seen: a number into `phases`, names
    log_*       [N, ...]        what was logged with it: its frame, and what the environment says
    stored, drawable            number of steps in the whole buffer, and of those that can be drawn
    totals      float64 [R]     sum of the priorities of the whole buffer under each rule
    visits_total                sum of the visits of the whole buffer
    fraction                    part of a batch that is drawn by the second rule
    num_envs                    id = time · num_envs + environment
    frame, step, update         counters of the run

Nothing in it depends on the clock: a resumed run writes the same bytes again.
"""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from curious_replay.durable import UNFINISHED, write_bytes
from curious_replay.replay import Mixture, ReplayBuffer
from curious_replay.run.worlds.transition import stores_when
from curious_replay.run_folder import SNAPSHOTS


def take(
    replay: ReplayBuffer, phases: Sequence[str], counters: Mapping[str, int], most: int
) -> dict[str, Any]:
    """Look at the buffer; `most` steps are kept, and `phases` are what `log_phase` counts."""
    every = replay.ids()
    mixed = isinstance(replay.rule, Mixture)
    visits = replay.visits(every)
    priorities = np.stack([replay.priorities(every, part) for part in range(1 + mixed)])
    kept = np.linspace(0, len(every) - 1, min(most, len(every))).astype(np.int64)
    ids = every[kept]
    terms = {
        f"{prefix}{name}": term
        for part, prefix in enumerate(("", "second/")[: 1 + mixed])
        for name, term in (replay.terms(ids, part) or {}).items()
    }
    fields = replay.storage.layout.fields if replay.storage is not None else ()
    logs = {field.name: replay.read(ids, field.name) for field in fields if field.is_log}
    # Replay of runs from earlier versions: all of it as one phase.
    known = bool(fields) and stores_when(replay)
    phase = logs.pop("log_phase") if known else np.zeros(len(ids), np.int32)
    return {
        "ids": ids,
        "visits": visits[kept].astype(np.int32),
        "priorities": priorities[:, kept],
        "terms": np.array(list(terms.values())).reshape(len(terms), len(ids)),
        "term_names": np.array(list(terms), np.str_),
        "phase": phase,
        "phases": np.array(phases if known else [""], np.str_),
        **logs,
        "stored": len(every),
        "drawable": np.count_nonzero(priorities[0]),
        "totals": priorities.sum(1),
        "visits_total": visits.sum(),
        "fraction": replay.rule.fraction if isinstance(replay.rule, Mixture) else 0.0,
        "num_envs": replay.num_envs,
        **{name: counters[name] for name in ("frame", "step", "update")},
    }


def write(run: Path, content: Mapping[str, Any]) -> Path:
    """Write a snapshot into a run folder, whole or not at all."""
    path = run / SNAPSHOTS / f"{content['step']:09d}.npz"
    path.parent.mkdir(exist_ok=True)
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, **content)
    write_bytes(path, out.getvalue())
    return path


def forget_after(run: Path, step: int) -> None:
    """Take back snapshots of later steps, and those that a kill left unfinished."""
    for path in (run / SNAPSHOTS).glob("*.npz"):
        if path.name.startswith(UNFINISHED) or (path.stem.isdigit() and int(path.stem) > step):
            path.unlink()
