"""A sum tree: draw an index with probability proportional to its value, change values, quickly.

The tree is a table of nodes of eight numbers each, one cache line a node. The numbers of the
lowest level are the values themselves; a number above is the sum of one node below. Level k
starts at row `level[k]` of the table, and the number at position i of level k stands for row i
of level k + 1. Sums are always made anew from what is below them, never adjusted by differences,
so that rounding cannot pile up: a tree after any number of changes equals a freshly built one.
"""

import numpy as np
import numpy.typing as npt

from .compiled import compiled, sum_of_eight
from .priority import Floats

Ints = npt.NDArray[np.int64]

WIDTH = 8  # numbers in a node: sum_of_eight and _draw are written for it
_SHIFT = 3  # 2**_SHIFT = WIDTH
_LARGEST = 1e290  # more than this could make a sum infinite


class SumTree:
    """Values at indices 0 to capacity - 1, all 0 at first."""

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, got {capacity}")
        self.capacity = capacity
        rows = [-(-capacity // WIDTH)]
        while rows[0] > 1:
            rows.insert(0, -(-rows[0] // WIDTH))
        self.level: Ints = np.cumsum([0, *rows], dtype=np.int64)
        self.table = _aligned_zeros(int(self.level[-1]), WIDTH)
        leaves = self.table[self.level[-2] :].reshape(-1)
        self.leaves = leaves[:capacity]

    @property
    def total(self) -> float:
        """The sum of all values."""
        return float(_node_sum(self.table, 0))

    def get(self, indices: Ints) -> Floats:
        """Return the values at `indices`."""
        return self.leaves[indices]

    def set(self, indices: Ints, values: Floats) -> None:
        """Give `indices` [N] their `values` [N]; of an index that occurs twice the last one stays.

        Values must be finite, at least 0 and at most 1e290.
        """
        done = set_leaves(self.table, self.level, self.capacity, indices, values)
        if done < 0:
            raise ValueError(f"{len(indices)} indices but {len(values)} values")
        if done < len(indices):
            raise ValueError(
                f"cannot set index {indices[done]} to {values[done]}: indices go from 0 to "
                f"{self.capacity - 1}, values from 0 to {_LARGEST}"
            )

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        """Draw `count` indices independently, each with probability value / total."""
        drawn = _draw(self.table, self.level, rng.random(count))
        if drawn.size < count:
            raise ValueError("cannot sample: all values are 0")
        return drawn


def _aligned_zeros(rows: int, width: int) -> Floats:
    """Zeros [rows, width] that start at a cache line, so that a node is one line."""
    line = 64 // 8
    raw = np.zeros(rows * width + line)
    start = -(raw.__array_interface__["data"][0] // 8) % line
    return raw[start : start + rows * width].reshape(rows, width)


# Row numbers are made unsigned before use: Numba then leaves out the test for negative indices.


@compiled
def _node_sum(table: Floats, row: int) -> float:
    total: float = sum_of_eight(table, np.uintp(row))
    return total


@compiled
def set_leaves(table: Floats, level: Ints, capacity: int, indices: Ints, values: Floats) -> int:
    """Set leaves up to the first wrong one, and the sums above them. Returns how many were set."""
    if len(indices) != len(values):
        return -1
    numbers = table.reshape(-1)
    lowest = len(level) - 2
    # Rows of the current level whose sums must be made anew. A row that follows itself is noted
    # once, which makes the runs of neighbours in a replayed window cheap.
    changed = np.empty(len(indices), np.int64)
    count = 0
    last = -1
    done = len(indices)
    start = level[lowest] << _SHIFT
    for i in range(len(indices)):
        index, value = indices[i], values[i]
        if np.uintp(index) >= np.uintp(capacity) or not 0.0 <= value <= _LARGEST:
            done = i
            break
        numbers[np.uintp(start + index)] = value
        row = index >> _SHIFT
        if row != last:
            changed[count] = row
            count += 1
            last = row
    for k in range(lowest, 0, -1):
        here, above = level[k], level[k - 1] << _SHIFT
        rows = level[k + 1] - here
        if count >= rows:  # a level this small is made anew as a whole, and so are all above it
            for row in range(rows):
                numbers[np.uintp(above + row)] = _node_sum(table, here + row)
            count = here - level[k - 1]
            continue
        noted = 0
        last = -1
        for i in range(count):
            row = changed[i]
            numbers[np.uintp(above + row)] = _node_sum(table, here + row)
            parent = row >> _SHIFT
            if parent != last:
                changed[noted] = parent
                noted += 1
                last = parent
        count = noted
    return done


@compiled
def _draw(table: Floats, level: Ints, uniform: Floats) -> Ints:
    """Walk down from the root for each number of `uniform` in [0, 1); empty if the total is 0.

    All walks take a level together, so that their cache misses overlap, and a node is searched by
    halving without branches.
    """
    total = _node_sum(table, 0)
    if total <= 0.0:
        return np.empty(0, np.int64)
    position = np.zeros(len(uniform), np.int64)
    rest = uniform * total
    for k in range(len(level) - 1):
        for i in range(len(rest)):
            n = table[np.uintp(level[k] + position[i])]
            x = rest[i]
            first, third = n[0] + n[1], n[4] + n[5]
            half = first + (n[2] + n[3])
            right = x >= half
            x = x - half if right else x
            quarter = third if right else first
            j = 4 if right else 0
            right = x >= quarter
            x = x - quarter if right else x
            j += 2 if right else 0
            right = x >= n[j]
            x = x - n[j] if right else x
            j += 1 if right else 0
            rest[i] = x
            position[i] = (position[i] << _SHIFT) + j
    # Where rounding made `rest` as large as all that is left, a walk ends too far to the right.
    leaves = table[level[len(level) - 2] :].reshape(-1)
    for i in range(len(position)):
        while leaves[np.uintp(position[i])] == 0.0:
            position[i] -= 1
    return position
