"""Where trajectories begin and end in a TorchRL storage, by the keys that its own samplers know."""

from collections.abc import Sequence
from typing import Any

import torch
from tensordict import is_tensor_collection

from curious_replay.errors import UsageError
from curious_replay.replay.sumtree import Ints
from curious_replay.replay.windows import Flags

Key = str | tuple[str, ...]

TRAJECTORY_KEYS: tuple[Key, ...] = (("collector", "traj_ids"), "episode")
END_KEY: Key = ("next", "done")


class Trajectories:
    """Finds first and last steps of trajectories, by their ids or by flags at their ends.

    Without any key those are tried that TorchRL's own samplers try: ids in "collector", "traj_ids"
    or in "episode", then the flag in "next", "done".
    """

    def __init__(
        self, traj_key: Key | None, end_key: Key | None, end_keys: Sequence[Key] | None
    ) -> None:
        if end_key is not None and end_keys is not None:
            raise UsageError("give one key as end_key or several as end_keys, not both")
        self.ends: tuple[Key, ...] = tuple(end_keys or () if end_key is None else (end_key,))
        self.ids: tuple[Key, ...] = () if traj_key is None else (traj_key,)
        if not self.ids and not self.ends:
            self.ids, self.ends = TRAJECTORY_KEYS, (END_KEY,)

    def flags(self, storage: Any, rows: Ints, envs: Ints, num_envs: int) -> tuple[Flags, Flags]:
        """Return which of the steps in rows [N] of environments [N] are first ones and last ones.

        Only steps are asked for whose row before is theirs too, or that nothing is before.
        """
        table = columns(storage)
        stored = len(table)
        for key in self.ids:
            ids = table.get(key, default=None)
            if ids is not None:
                before = (rows - 1) % stored
                changed = _at(ids, rows, envs, num_envs) != _at(ids, before, envs, num_envs)
                return _flags(changed), torch.zeros(len(rows), dtype=torch.bool).numpy()
        found = [end for end in (table.get(key, default=None) for key in self.ends)
                 if end is not None]  # fmt: skip
        if not found:
            raise UsageError(
                f"the storage has none of the keys {[*self.ids, *self.ends]} that tell where "
                "trajectories end: name one as traj_key or end_key; its keys are "
                f"{sorted(map(str, table.keys(include_nested=True, leaves_only=True)))}"
            )
        last = torch.zeros(len(rows), 1, dtype=torch.bool)
        for end in found:
            last = last | _at(end, rows, envs, num_envs).bool().any(-1, keepdim=True)
        return torch.zeros(len(rows), dtype=torch.bool).numpy(), _flags(last)


def columns(storage: Any) -> Any:
    """Return all that a storage holds, [rows, ...]: a view, of which single fields are read."""
    table = storage[:]
    if not is_tensor_collection(table):
        raise UsageError(
            "CuriousSampler needs a storage of TensorDicts, for instance LazyTensorStorage or "
            f"LazyMemmapStorage; a {type(storage).__name__} gives a {type(table).__name__}"
        )
    return table


def _at(column: torch.Tensor, rows: Ints, envs: Ints, num_envs: int) -> torch.Tensor:
    """Return a field of steps on the CPU, [N, *]."""
    flat = column.reshape(len(column) * num_envs, -1)
    places = torch.from_numpy(rows * num_envs + envs)
    return flat[places.to(flat.device)].cpu()


def _flags(each: torch.Tensor) -> Flags:
    flags: Flags = each.any(-1).numpy()
    return flags
