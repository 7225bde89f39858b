"""What the pages show: commands and pieces of Python, in the order in which they are read."""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
# As a reader would take them: the README, how to train, and the others.
ORDER = ("README.md", "CONTRIBUTING.md", "docs/training.md")
PAGES = [
    *(ROOT / name for name in ORDER),
    *sorted(path for path in (ROOT / "docs").glob("*.md") if f"docs/{path.name}" not in ORDER),
]
TEXTS = {path.name: path.read_text() for path in PAGES}

PROGRAM = r"(?:curious|make|python|pip|cd|(?:\.venv|\.ci|bench)/[^\s`]+)"
FENCED = r"^```(?P<kind>\w*)\n(?P<block>[\s\S]*?)^```$"
INDENTED = r"(?:^ {4}\S.*\n)+"
INLINE = rf"`(?P<inline>{PROGRAM} [^`]+)`"


@dataclass(frozen=True)
class Shown:
    """One thing that a page shows."""

    block: int
    """Which block of the page: what is in one block belongs together."""
    command: str = ""
    python: str = ""


def shown(page: str) -> list[Shown]:
    """Commands and Python of a page; of docstrings in Python the commands too."""
    found = []
    pattern = re.compile(f"{FENCED}|{INDENTED}|{INLINE}", re.MULTILINE)
    for number, match in enumerate(pattern.finditer(TEXTS[page])):
        if match["inline"]:
            found.append(Shown(number, command=" ".join(match["inline"].split())))
            continue
        block = match["block"] or match[0]
        lines = re.findall(rf"^ *({PROGRAM}(?: (?:.*\\\n)*.*)?)$", block, re.MULTILINE)
        joined = [re.sub(r"\\\n *", "", line) for line in lines]
        found += [Shown(number, command=line) for line in joined]
        if match["kind"] == "python":
            found.append(Shown(number, python=block))
    return found
