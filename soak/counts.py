"""What a soak has done and found so far: kept in a file, shown as tables."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cases import Case
from notes import ACTIVITIES
from victim import WAYS, Size

from curious_replay.run.record.files import read_json, write_json

FILE = "soak.json"
GROWTH_ALLOWED = 0.03
"""Part of its memory by which a run may grow between the middle and the last third of its life."""

Row = Sequence[str | int]


@dataclass
class Counts:
    """Numbers and findings of one soak."""

    seed: int
    minutes: float = 0.0
    """Time spent so far."""
    finished: bool = False
    """Whether it came to its end, or was interrupted."""
    rounds: int = 0
    """Runs that were killed, resumed to the end, and compared with one never disturbed."""
    starts: int = 0
    lines: int = 0
    """Lines of metrics and episodes that were compared."""
    kills: dict[str, dict[str, int]] = field(default_factory=dict)
    """By what the run was doing, and by signal."""
    by: dict[str, dict[str, dict[str, int]]] = field(default_factory=dict)
    """Rounds and kills by agent, by environment, by replay."""
    lives: list[dict[str, Any]] = field(default_factory=list)
    """Memory and open files of runs that were watched for longer."""
    wrong: list[str] = field(default_factory=list)
    """All that was not as it should be."""

    def kill(self, case: Case, activity: str, way: str) -> None:
        """Count a kill."""
        ways = self.kills.setdefault(activity, {})
        ways[way] = ways.get(way, 0) + 1
        self._count(case, "kills")

    def compared(self, case: Case, lines: int) -> None:
        """Count a round."""
        self.rounds += 1
        self.lines += lines
        self._count(case, "rounds")

    def complain(self, case: Case, what: Sequence[str]) -> None:
        """Keep what was found wrong."""
        self.wrong += [f"{case}: {each}" for each in what]

    def life(self, case: Case, seen: Sequence[tuple[int, Size]]) -> None:
        """Judge what a run took over its life, as seen at some of its steps.

        Its first third is not counted, nor its end. Of the rest the least counts: what is needed
        for a moment only, to save for instance, is no growth.
        """
        middle = [size for step, size in seen if case.steps <= 3 * step < 2 * case.steps]
        last = [size for step, size in seen if 2 * case.steps <= 3 * step < 3 * case.steps]
        if not (middle and last):
            self.complain(case, ["was not seen often enough to judge its memory"])
            return
        memory = [min(size.memory for size in part) for part in (middle, last)]
        files = [min(size.files for size in part) for part in (middle, last)]
        self.lives.append(
            {
                "agent": case.agent,
                "environment": case.environment,
                "steps": case.steps,
                "memory": [round(each, 1) for each in memory],
                "files": files,
            }
        )
        if memory[1] > memory[0] * (1 + GROWTH_ALLOWED):
            self.complain(case, [f"memory grew from {memory[0]:.1f} to {memory[1]:.1f} MB"])
        if files[1] > files[0]:
            self.complain(case, [f"open files grew from {files[0]} to {files[1]}"])

    def write(self, folder: Path) -> None:
        """Replace the file in one step."""
        write_json(folder / FILE, asdict(self))

    @classmethod
    def read(cls, path: Path) -> "Counts":
        """What `write` wrote."""
        return cls(**read_json(path))

    def _count(self, case: Case, what: str) -> None:
        for kind in ("agent", "environment", "replay"):
            row = self.by.setdefault(kind, {}).setdefault(getattr(case, kind), {})
            row[what] = row.get(what, 0) + 1

    def tables(self) -> dict[str, tuple[Row, list[Row]]]:
        """Title, head and rows of each table."""
        kills: list[Row] = []
        for activity in ACTIVITIES:
            ways = self.kills.get(activity, {})
            kills.append([activity, *(ways.get(way, 0) for way in WAYS), sum(ways.values())])
        total = [sum(int(row[at]) for row in kills) for at in range(1, len(WAYS) + 2)]
        tables: dict[str, tuple[Row, list[Row]]] = {
            "Kills": (["killed while", *WAYS, "all"], [*kills, ["all", *total]])
        }
        for kind, names in self.by.items():
            rows: list[Row] = [_row(name, row) for name, row in sorted(names.items())]
            tables[f"By {kind}"] = ([kind, "runs compared", "kills"], rows)
        lives: list[Row] = [_life(each) for each in self.lives]
        head = ["agent", "environment", "steps", "MB, middle third", "MB, last third",
                "open files, middle", "open files, last"]  # fmt: skip
        return {**tables, "Memory and open files": (head, lives)}

    def summary(self) -> str:
        """One sentence."""
        kills = sum(sum(ways.values()) for ways in self.kills.values())
        state = "" if self.finished else " (interrupted)"
        found = f"{len(self.wrong)} differences" if self.wrong else "no difference"
        return (
            f"{self.minutes:.0f} minutes{state}, seed {self.seed}: {kills} kills in {self.rounds} "
            f"runs ({self.starts} starts), {self.lines} lines compared: {found}"
        )

    def plain(self) -> str:
        """For a terminal."""
        parts = [self.summary()]
        for title, (head, rows) in self.tables().items():
            cells = [[str(cell) for cell in row] for row in (head, *rows)]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
            parts.append("\n".join([title, *lines]))
        return "\n\n".join([*parts, *self.wrong])

    def markdown(self) -> str:
        """For docs/reliability.md."""
        parts = [self.summary() + "."]
        for head, rows in self.tables().values():
            lines = [head, ["---"] * len(head), *rows]
            parts.append("\n".join("| " + " | ".join(map(str, row)) + " |" for row in lines))
        return "\n\n".join([*parts, *self.wrong])


def _row(name: str, row: Mapping[str, int]) -> Row:
    return [name, row.get("rounds", 0), row.get("kills", 0)]


def _life(life: Mapping[str, Any]) -> Row:
    return [life["agent"], life["environment"], life["steps"], *life["memory"], *life["files"]]
