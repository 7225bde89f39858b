"""Tables that say the same as HTML, CSV and LaTeX."""

import csv
import io
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

Cell = str | int | float | None
"""Text, a number, or nothing."""
NOTHING = "–"
"""Stands for no number."""

_LATEX = {c: f"\\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip
RIGHT = ' class="number"'
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Table:
    """A table: text cells are shown as they are, numbers with four digits, nothing as a dash."""

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
        """Return it as CSV, numbers as shown."""
        return csv_of(self.columns, self.rows)

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


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[Cell]], exact: bool = False) -> str:
    """Return rows as CSV: what is no number is empty, and text cannot begin a formula.

    Numbers are as in tables, or `exact`: as many digits as it takes to read the same number.
    """

    def written(cell: Cell) -> str:
        if isinstance(cell, str):
            return f"'{cell}" if cell.startswith(_FORMULA) else cell
        if cell is None or not math.isfinite(cell):
            return ""
        return repr(cell if isinstance(cell, int) else float(cell)) if exact else number(cell)

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([written(cell) for cell in row] for row in rows)
    return out.getvalue()


def number(value: float | None) -> str:
    """Return a number with at most four digits that matter; a dash for no number."""
    if value is None or not math.isfinite(value):
        return NOTHING
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
        return number(cell).replace(NOTHING, "--")
    return re.sub(r"[&%$#_{}\\~^<>]", lambda found: _LATEX[found[0]], cell)
