"""What is left of what was learned: forgetting, measured against a buffer that was cleared."""

import numpy as np

from curious_replay.analysis import model_error, stats
from curious_replay.report import measures as m
from curious_replay.report.tables import Cell, Table


def forgetting_table(name: str, methods: m.Methods) -> list[Table]:
    """Return a table of the model error before and after the object is removed, by method.

    Paper: Figure 9. The control are all runs whose buffer was cleared at a change.
    """
    found = m.forgettings(methods)
    if not found:
        return []
    control = _mean([
        each
        for method, runs in methods.items()
        for run, each in zip(runs, found[method], strict=True)
        if run.setting("replay.clear_at_change")
    ])  # fmt: skip
    rows: list[list[Cell]] = []
    for method, each in found.items():
        whole = _mean(each)
        known = stats.finite([one.rise for one in each])
        share = model_error.share_of_control(whole, control)
        rows.append(
            [method, len(known), whole.before, whole.after, whole.worst, whole.ratio, share]
        )
    caption = (
        "Does the model forget the object once it is gone? Its error on the object's pixels in "
        "test scenes: in the last window before the object is removed, at the end, and at worst; "
        "means over runs. Share of control: the rise in error divided by that of the runs whose "
        "buffer was cleared, 0 remembers and 1 forgets as they do; – where there are none."
    )
    columns = ("method", "n", "before", "at the end", "worst", "ratio", "share of control")
    return [Table(f"{name}-forgetting", caption, columns, rows)]


def _mean(runs: list[model_error.Forgetting]) -> model_error.Forgetting:
    """Return means over the runs that have a value before and after."""
    known = [each for each in runs if np.isfinite(each.rise)]
    values = [
        stats.summary([getattr(each, what) for each in known]).mean
        for what in ("before", "after", "worst")
    ]
    return model_error.Forgetting(*values)
