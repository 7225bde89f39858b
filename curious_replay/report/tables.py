"""Tables that say the same as HTML, CSV and LaTeX."""

import csv
import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

Cell = str | int | float

_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
RIGHT = ' class="number"'
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Table:
    """A table: text cells are shown as they are, numbers with four digits."""

    name: str
    """Of its file."""
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def html(self) -> str:
        """Return a table element; every cell is escaped."""
        head = "".join(
            f'<th scope="col"{"" if self._is_text(i) else RIGHT}>{escape(name)}</th>'
            for i, name in enumerate(self.columns)
        )
        body = "".join(
            "<tr>" + "".join(_html_cell(cell, i) for i, cell in enumerate(row)) + "</tr>"
            for row in self.rows
        )
        return (
            f'<div class="scroll" tabindex="0"><table aria-describedby="about-{self.name}">'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
            f'<p class="faint" id="about-{self.name}">{escape(self.caption)}</p>'
        )

    def csv(self) -> str:
        """Return it as CSV, numbers as shown; text cannot begin a spreadsheet's formula."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(self.columns)
        for row in self.rows:
            writer.writerow([_harmless(c) if isinstance(c, str) else number(c) for c in row])
        return out.getvalue()

    def latex(self) -> str:
        """Return a booktabs table."""
        align = "".join("l" if self._is_text(i) else "r" for i in range(len(self.columns)))
        lines = [" & ".join(map(_latex_cell, row)) + r" \\" for row in (self.columns, *self.rows)]
        return "\n".join([
            r"\begin{table}", rf"\caption{{{_latex_cell(self.caption)}}}",
            rf"\begin{{tabular}}{{{align}}}", r"\toprule", lines[0], r"\midrule", *lines[1:],
            r"\bottomrule", r"\end{tabular}", r"\end{table}", "",
        ])  # fmt: skip

    def _is_text(self, column: int) -> bool:
        return any(isinstance(row[column], str) for row in self.rows)


def number(value: float) -> str:
    """Return a number with at most four digits that matter; a dash for no number."""
    if not math.isfinite(value):
        return "–"
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return str(int(value))
    size = abs(value)
    if size < 1e-3:
        return f"{value:.2e}"
    decimals = max(0, 3 - math.floor(math.log10(size)))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _html_cell(cell: Cell, column: int) -> str:
    if isinstance(cell, str):
        tag = "th scope=row" if column == 0 else "td"
        return f"<{tag}>{escape(cell)}</{tag.split(maxsplit=1)[0]}>"
    return f'<td class="number">{number(cell)}</td>'


def _latex_cell(cell: Cell) -> str:
    if not isinstance(cell, str):
        return number(cell).replace("–", "--")
    return re.sub(r"[&%$#_{}\\~^<>]", lambda found: _LATEX[found[0]], cell)


def _harmless(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
