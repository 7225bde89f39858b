"""Batches of made-up steps."""

import numpy as np


def make_batch(rows=3, steps=8, actions=4, size=32, vector=0, discrete=True, seed=0, ends=0.15):
    """Steps [rows, steps, ...] with episode ends here and there, as replay hands them out."""
    rng = np.random.default_rng(seed)
    is_first = rng.random((rows, steps)) < ends
    is_first[:, 0] = True
    is_last = np.zeros((rows, steps), bool)
    is_last[:, :-1] = is_first[:, 1:]
    if discrete:
        action = np.eye(actions, dtype=np.float32)[rng.integers(0, actions, (rows, steps))]
    else:
        action = rng.uniform(-1, 1, (rows, steps, actions)).astype(np.float32)
    batch = {
        "action": np.where(is_last[..., None], 0, action).astype(np.float32),
        "reward": np.where(is_first, 0, rng.normal(size=(rows, steps))).astype(np.float32),
        "is_first": is_first,
        "is_last": is_last,
        "is_terminal": is_last & (rng.random((rows, steps)) < 0.5),
    }
    if size:
        batch["image"] = rng.integers(0, 256, (rows, steps, size, size, 3), dtype=np.uint8)
    if vector:
        batch["vector"] = rng.normal(size=(rows, steps, vector)).astype(np.float32)
    return batch


def batch_of(kind="discrete", **kwargs):
    """`make_batch` with four discrete actions, or with two continuous ones."""
    if kind == "continuous":
        kwargs |= {"actions": 2, "discrete": False}
    return make_batch(**kwargs)


def with_streams(batch, streams, **kwargs):
    """The batch with windows of further streams in it, {name: (windows, length)}."""
    made = dict(batch)
    for number, (name, (rows, steps)) in enumerate(streams.items(), 100):
        more = make_batch(**{**kwargs, "rows": rows, "steps": steps, "seed": number})
        made |= {f"{name}/{field}": array for field, array in more.items()}
    return made


def check_td_where_no_step_led(td, is_first):
    """Unknown at the first step of each window, 0 where an episode begins later; [B, T] both."""
    assert np.array_equal(np.isnan(td), np.arange(td.shape[1]) + np.zeros_like(td) == 0)
    assert np.array_equal(td[:, 1:] == 0, is_first[:, 1:])


def count(module):
    """Parameters that learn."""
    return sum(p.numel() for p in module.parameters() if p.requires_grad)
