"""What the world model knows of the object: its error on test scenes, and whether it forgets.

A probe lets the model watch the first steps of a fixed test scene, then predict what follows from
the recorded actions alone. It appends to `probe.jsonl` in the run folder, one line for each scene
and each step predicted:

    frame, step, update   counters of the run at the time, as in metrics.jsonl
    scene                 number or name of the scene
    ahead                 how many steps after the last picture seen: 1, 2, ...
    mse                   mean over all pixels and channels of (prediction - truth)², pixels in
                          [0, 1], prediction clipped to that range
    mse_object            the same over the pixels that show the object in the true picture; left
                          out where there are none
    object_pixels         how many there are

Like metrics.jsonl, the file must not depend on the clock: a resumed run writes the same lines
again. A scene has the same pictures and actions every time. The paper lets the model see 30 steps
and predict 45, with the most likely latents.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from curious_replay.analysis.lines import Array
from curious_replay.analysis.load import Run


@dataclass(frozen=True)
class Forgetting:
    """Model error before and after the object is removed."""

    before: float
    """Mean error in the window just before."""
    after: float
    """Mean error in the last window of the run, or up to `stop`."""
    worst: float
    """Largest error after removal."""

    @property
    def rise(self) -> float:
        """How much the error grew: positive if the model forgot."""
        return self.after - self.before

    @property
    def ratio(self) -> float:
        """After divided by before: above 1 if the model forgot."""
        return self.after / self.before if self.before else float("nan")


def error_over_time(
    frames: npt.ArrayLike, scenes: npt.ArrayLike, errors: npt.ArrayLike
) -> tuple[Array, Array]:
    """Return the model error at each time it was probed (paper: Figure 2e).

    It is the mean over the steps predicted of each scene, then over scenes, so that each scene has
    the same weight. Errors that are NaN are left out. Returns frames [P] and errors [P].
    """
    frame, scene = np.asarray(frames), np.asarray(scenes)
    error = np.asarray(errors, np.float64)
    kept = np.isfinite(error)
    frame, scene, error = frame[kept], scene[kept], error[kept]
    times, at = np.unique(frame, return_inverse=True)
    names, which = np.unique(scene, return_inverse=True)
    sums, counts = np.zeros((2, len(times), len(names)))
    np.add.at(sums, (at, which), error)
    np.add.at(counts, (at, which), 1)
    means = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return times, np.nanmean(means, axis=1) if len(times) else np.zeros(0)


def mean_since(frames: npt.ArrayLike, errors: npt.ArrayLike, start: int) -> float:
    """Return the mean error of all probes after the frame `start`.

    It is low if the change is soon modelled.
    """
    return _mean(np.asarray(errors, np.float64)[np.asarray(frames) > start])


def forgetting(
    frames: npt.ArrayLike,
    errors: npt.ArrayLike,
    removal: int,
    window: int,
    stop: int | None = None,
) -> Forgetting:
    """Return the error before and after the object is removed (paper: Figure 9).

    `before` is the mean over (removal - window, removal], `after` over the last `window` frames
    up to `stop` (the last probe if None), but never before the removal. A model that remembers has
    a ratio near 1. The control is the same measure on runs whose buffer was cleared at the removal:
    they show what forgetting looks like.
    """
    frame, error = np.asarray(frames), np.asarray(errors, np.float64)
    inside = np.isfinite(error) if stop is None else np.isfinite(error) & (frame <= stop)
    frame, error = frame[inside], error[inside]
    last = int(frame[-1]) if len(frame) else removal
    later = frame > removal
    return Forgetting(
        before=_mean(error[(frame > removal - window) & ~later]),
        after=_mean(error[later & (frame > last - window)]),
        worst=float(error[later].max()) if later.any() else float("nan"),
    )


def share_of_control(measured: Forgetting, control: Forgetting) -> float:
    """Return how much of the control's rise in error is there.

    0 remembers, 1 forgets as a cleared buffer; NaN if the control's error did not rise.
    """
    return measured.rise / control.rise if control.rise > 0 else float("nan")


def errors_of(
    run: Run, what: str = "mse_object", ahead: tuple[int, int] | None = None
) -> tuple[Array, Array]:
    """Return frames and errors [N] of a run's probes.

    They are perhaps of some steps ahead (from, to) only.
    """
    probes = run.probes
    if ahead is not None and probes.rows:
        probes = probes.where((probes["ahead"] >= ahead[0]) & (probes["ahead"] <= ahead[1]))
    return error_over_time(probes["frame"], probes["scene"], probes[what])


def _mean(values: Array) -> float:
    return float(values.mean()) if len(values) else float("nan")
