"""A sum tree: draw an index with probability proportional to its value, change values, quickly.

The tree is a table of nodes of eight numbers each, one cache line a node. The numbers of the
lowest level are the values themselves; a number above is the sum of one node below. Level k
starts at row `level[k]` of the table, and the number at position i of level k stands for row i
of level k + 1. Sums are always made anew from what is below them, never adjusted by differences,
so that rounding cannot pile up: a tree after any number of changes equals a freshly built one.
"""

import numpy as np
import numpy.typing as npt

from curious_replay.replay.compiled import compiled, prefetch, set_eight, sum_of_eight
from curious_replay.replay.rule import Floats

Ints = npt.NDArray[np.int64]

WIDTH = 8  # numbers in a node: set_eight, sum_of_eight and draw_leaves are written for it
_SHIFT = 3  # 2**_SHIFT = WIDTH
LARGEST = 1e290  # more than this could make a sum infinite


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
        """Return the values at `indices`, in their shape."""
        return self.leaves[indices]

    def set(self, indices: Ints, values: Floats) -> None:
        """Give `indices` [N] their `values` [N]; of an index that occurs twice the last one stays.

        Values must be finite, at least 0 and at most 1e290.
        """
        done = set_leaves(self.table, self.capacity, indices, values)
        if done < 0:
            raise ValueError(f"{len(indices)} indices but {len(values)} values")
        if done < len(indices):
            raise ValueError(
                f"cannot set index {indices[done]} to {values[done]}: indices go from 0 to "
                f"{self.capacity - 1}, values from 0 to {LARGEST}"
            )

    def sample(self, count: int, rng: np.random.Generator) -> Ints:
        """Draw indices [count] independently, each with probability value / total."""
        drawn = draw_leaves(self.table, self.level, rng.random(count))
        if drawn.size < count:
            raise ValueError("cannot sample: all values are 0")
        return drawn


def _aligned_zeros(rows: int, width: int) -> Floats:
    """Return zeros [rows, width] that start at a cache line, so that a node is one line."""
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
def node_of(index: int) -> int:
    """Return which node of the lowest level holds the value at `index`."""
    return index >> _SHIFT


@compiled
def _rows_above(numbers: int) -> int:
    """Return how many nodes hold so many numbers, or the sums of so many nodes."""
    return (numbers + WIDTH - 1) >> _SHIFT


@compiled
def leaves_of(table: Floats, capacity: int) -> Floats:
    """Return the values of a tree as a view of its table, [capacity or a few more]."""
    return table[len(table) - _rows_above(capacity) :].reshape(-1)


@compiled
def set_leaves(table: Floats, capacity: int, indices: Ints, values: Floats) -> int:
    """Set leaves at indices [N] to values [N], and the sums above them; stop at a wrong one.

    Returns how many were set.
    """
    many = len(indices)
    if many != len(values):
        return -1
    numbers = table.reshape(-1)
    rows = _rows_above(capacity)  # of leaves, which begin at row `here`
    here = len(table) - rows
    above = here - _rows_above(rows)
    for i in range(0, many, WIDTH):  # fetch what will be written, and the sums of that
        row = indices[i] >> _SHIFT
        prefetch(table, np.uintp(here + row))
        prefetch(table, np.uintp(above + (row >> _SHIFT)))
    # Rows of leaves whose sums must be made anew. A row that follows itself is noted
    # once, which makes the runs of neighbours in a replayed window cheap. It is noted without a
    # branch, because where the next row begins cannot be predicted.
    changed = np.empty(many + 1, np.int64)
    count, last = 0, -1
    start = here << _SHIFT
    i = 0
    while i < many:
        index = indices[np.uintp(i)]
        row = until = index >> _SHIFT
        if (
            i + WIDTH <= many
            and indices[np.uintp(i + WIDTH - 1)] == index + WIDTH - 1  # not one by chance
            and 0 <= index <= capacity - WIDTH
            and set_eight(numbers, np.uintp(start + index), indices, values, np.uintp(i), LARGEST)
        ):
            i += WIDTH
            until = (index + WIDTH - 1) >> _SHIFT
        elif 0 <= index < capacity and 0.0 <= values[np.uintp(i)] <= LARGEST:
            numbers[np.uintp(start + index)] = values[np.uintp(i)]
            i += 1
        else:
            break
        changed[np.uintp(count)] = row
        count += row != last
        changed[np.uintp(count)] = until
        count += until != row
        last = until
    renew_sums(table, capacity, changed, count)
    return i


@compiled
def renew_sums(table: Floats, capacity: int, changed: Ints, count: int) -> None:
    """Make the sums above the leaf nodes `changed[:count]` anew; `changed` is used up."""
    numbers = table.reshape(-1)
    rows = _rows_above(capacity)  # of the current level, which begins at row `here`
    here = len(table) - rows
    while here > 0:
        above = here - _rows_above(rows)
        start = above << _SHIFT
        if count >= rows:  # a level this small is made anew as a whole, and so are all above it
            for row in range(rows):
                numbers[np.uintp(start + row)] = _node_sum(table, here + row)
            count = rows
        else:
            noted, last = 0, -1
            for j in range(count):
                row = changed[j]
                numbers[np.uintp(start + row)] = _node_sum(table, here + row)
                parent = row >> _SHIFT
                changed[np.uintp(noted)] = parent
                noted += parent != last
                last = parent
            count = noted
        rows, here = here - above, above


@compiled
def draw_leaves(table: Floats, level: Ints, uniform: Floats) -> Ints:
    """Walk down from the root for each number of `uniform` in [0, 1); empty if the total is 0.

    All walks take a level together, so that their cache misses overlap: each asks for its next
    node, and has it when its turn comes again. A node is searched by halving without branches.
    """
    total = _node_sum(table, 0)
    if total <= 0.0:
        return np.empty(0, np.int64)
    position = np.zeros(len(uniform), np.int64)
    rest = uniform * total
    lowest = len(level) - 2
    for k in range(lowest + 1):
        here, below = level[k], level[k + 1]
        # Where rounding made `rest` as large as all that is left, a walk goes too far to the right:
        # not beyond the level, and in the end back to a leaf that is not 0.
        end = level[k + 2] - below if k < lowest else (below - here) << _SHIFT
        for i in range(len(rest)):
            n = table[np.uintp(here + position[i])]
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
            position[i] = min((position[i] << _SHIFT) + j, end - 1)
            if k < lowest:
                prefetch(table, np.uintp(below + position[i]))
    leaves = table[level[lowest] :].reshape(-1)
    for i in range(len(position)):
        while leaves[np.uintp(position[i])] == 0.0:
            position[i] -= 1
    return position
