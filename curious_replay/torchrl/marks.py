"""Marks in a batch of slices that lie one after the other: where each begins, and where it ends."""

from typing import Any

import torch

from curious_replay.torchrl.trajectories import Key, columns

Index = tuple[torch.Tensor, ...]


def marks(
    storage: Any, index: Index, length: int, truncated_key: Key | None, init_key: Key | None
) -> dict[Key, Any]:
    """Return the fields that a batch has instead of the stored ones, [N, ...] each.

    As by TorchRL's own samplers of slices: each slice is truncated, and so done, at its last step,
    and begins at its first one if the storage has such a field at all.
    """
    table, count = columns(storage), len(index[0])
    place = torch.arange(count) % length
    fields: dict[Key, Any] = {}
    if truncated_key is not None:
        ends = place == length - 1
        for name, mark in (("truncated", ends), ("done", ends), ("terminated", None)):
            key = name if isinstance(truncated_key, str) else (*truncated_key[:-1], name)
            fields[truncated_key if name == "truncated" else key] = _marked(table, key, index, mark)
    if init_key is not None and table.get(init_key, default=None) is not None:
        fields[init_key] = _marked(table, init_key, index, place == 0)
    return fields


def _marked(table: Any, key: Key, index: Index, mark: torch.Tensor | None) -> torch.Tensor:
    """Return stored flags, if there are any, or marks [N]; [N, 1] where nothing is stored."""
    column = table.get(key, default=None)
    if mark is None:
        mark = torch.zeros(len(index[0]), dtype=torch.bool)
    if column is None:
        return mark[:, None]
    stored: torch.Tensor = column[tuple(each.to(column.device) for each in index)]
    return stored | mark.to(stored.device).reshape(-1, *[1] * (stored.ndim - 1))
