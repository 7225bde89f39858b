"""How much of replay the count term takes, by train ratio and scale of the losses.

    python bench/novelty.py

A buffer is filled step by step while it is replayed, as in training, but with losses that are the
same for all steps. What comes out depends on the rule alone: the share of the priorities that is
count, how much of what was replayed of late was new, and how much of a batch is not there twice.
"""

import argparse
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import timing

from curious_replay.replay import Balanced, Curious, Mixture, ReplayBuffer, Rule
from curious_replay.run.loop.novelty import visits_wanted

RATIOS = (16, 32, 64, 100, 512)
TERMS = (30.0, 5.0)
NEW = 1000
"""Steps that count as new: so many came last."""
LAST = 200
"""Batches that are looked at, the last ones."""


def simulate(
    rule: Rule | Mixture, ratio: float, term: float, options: argparse.Namespace
) -> dict[str, float]:
    """Fill and replay a buffer; returns what is drawn in the end."""
    alpha, eps = 0.7, 0.01  # of the rules
    windows, length = options.batch
    buffer = ReplayBuffer(options.steps, length, rule=rule, repeats=not options.no_repeats)
    loss = np.full((windows, length), term ** (1 / alpha) - eps)
    no, new = np.zeros(1, bool), deque[float](maxlen=LAST)
    distinct, owed = deque[float](maxlen=LAST), 0.0
    for step in range(options.steps):
        buffer.add({"is_first": np.array([step == 0]), "is_last": no, "is_terminal": no})
        owed += ratio / (windows * length)
        while owed >= 1 and buffer.ready:
            batch = buffer.sample(windows)
            buffer.update(batch.ids, {"model": loss})
            new.append(float((batch.ids > step - NEW).mean()))
            distinct.append(batch.distinct)
            owed -= 1
    stats = buffer.stats()
    return {
        "novelty_share": stats["novelty_share"],
        "new": float(np.mean(new)),
        "distinct": float(np.mean(distinct)),
        "never_visited": stats["never_visited"],
    }


def main() -> None:
    """Simulate all ratios and losses, print a table, write `novelty.json`."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=40_000, help="steps stored in the end")
    parser.add_argument("--batch", type=int, nargs=2, default=[16, 64], metavar=("B", "T"))
    parser.add_argument("--ratios", type=float, nargs="+", default=RATIOS)
    parser.add_argument("--terms", type=float, nargs="+", default=TERMS, help="loss terms")
    parser.add_argument("--no-repeats", action="store_true", help="no step twice in a batch")
    parser.add_argument("--out", type=Path, default=Path("out/bench"), help="folder for the JSON")
    options = parser.parse_args()
    rules: dict[str, Rule | Mixture] = {"curious": Curious(), "balanced 0.3": Balanced(0.3)}
    rows: list[dict[str, Any]] = []
    print(f"| rule | train ratio | loss term | v* | by count | of the last {NEW:,} | distinct |")
    print("|---|---|---|---|---|---|---|")
    for name, rule in rules.items():
        for ratio in options.ratios:
            for term in options.terms:
                found = simulate(rule, ratio, term, options)
                wanted = visits_wanted(1e4, 0.7, term) if name == "curious" else None
                rows.append({"rule": name, "ratio": ratio, "term": term, "v*": wanted, **found})
                shares = (f"{found[n]:.0%}" for n in ("novelty_share", "new", "distinct"))
                shown = "–" if wanted is None else f"{wanted:.0f}"
                cells = (name, f"{ratio:g}", f"{term:g}", shown, *shares)
                print(f"| {' | '.join(cells)} |", flush=True)
    settings = {name: value for name, value in vars(options).items() if name != "out"}
    timing.write(options.out / "novelty.json", {"settings": settings, "rows": rows})


if __name__ == "__main__":
    main()
