"""Run folders in, one page out: no other file, no network, nothing of a run's text as markup."""

import base64
import errno
import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

from curious_replay.analysis import chart, forks
from curious_replay.analysis.load import Run, Runs, group
from curious_replay.report import runs
from curious_replay.report.across import across
from curious_replay.report.explorer import explorer
from curious_replay.report.parts import Section
from curious_replay.report.sections import section
from curious_replay.report.tables import Table
from curious_replay.run_folder import VIDEOS
from curious_replay.untrusted import UnreadableError, open_file

VIDEO_BYTES = 4_000_000
"""Videos that are larger are named, not shown."""
EXPLAINED = (
    "Stored steps, oldest first. Above: chance to be drawn (logarithmic); below: how often trained "
    "on. Point at a step, or use the arrow keys."
)


@dataclass(frozen=True)
class Report:
    """A page, and what it shows as files of their own."""

    html: str
    sections: list[Section]
    tables: list[Table]
    runs: str
    """Every measure of every run, as CSV."""

    def save(self, path: Path, files: Path | None = None) -> list[Path]:
        """Write the page; into `files` figures (SVG, PDF), tables (CSV, LaTeX) and runs.csv.

        A page that is there is replaced at once: who looks at it never sees half of one.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        new = path.with_name(f".{path.name}.new")
        new.write_text(self.html, encoding="utf-8")
        new.replace(path)
        made = [path]
        if files is not None:
            files.mkdir(parents=True, exist_ok=True)
            for each in self.sections:
                for figure in (*each.figures, *each.small):
                    made += figure.chart.save(files / figure.name, ("svg", "pdf"))
            for table in self.tables:
                for suffix, text in ((".csv", table.csv()), (".tex", table.latex())):
                    made.append(files / f"{table.name}{suffix}")
                    made[-1].write_text(text, encoding="utf-8")
            made.append(files / "runs.csv")
            made[-1].write_text(self.runs, encoding="utf-8")
        return made


def report(
    found: Runs,
    *,
    by: Sequence[str] = ("replay",),
    baseline: str = "uniform",
    named: Mapping[Path, str] | None = None,
    first: Sequence[Section] = (),
    title: str = "Curious Replay: report",
    renew: float | None = None,
) -> Report:
    """Make the page. Runs that differ in the settings `by` are the methods that are compared.

    Methods may also be `named` by hand, {folder of a run: its method}. Sections that are made
    already come `first`. A browser loads the page again every `renew` seconds, if given.
    """
    groups = compared(found.runs, by, named)
    with chart.colors_of(_kinds(groups.values())):
        made = [
            _compare(number, key, methods, baseline)
            for number, (key, methods) in enumerate(groups.items(), 1)
        ]
        together = across(made, baseline)
        made = [*first, *([] if together is None else [together]), *made]
        body = [_section(each, number) for number, each in enumerate(made)]
    folders = runs.folders(found, forks.only_trunks(found.runs))
    tables = [folders, *(table for each in made for table in each.tables)]
    body.append('<section id="runs"><h2>Runs</h2>' + folders.html() + "</section>")
    links = [f'<li><a href="#part-{i}">{escape(s.title)}</a></li>' for i, s in enumerate(made)]
    finished = sum(run.finished for run in found.runs)
    html = assemble(
        escape(title),
        f"Runs: {len(found.runs)}, finished: {finished}, "
        f"folders that cannot be read: {len(found.broken)}",
        "".join([*links, '<li><a href="#runs">Runs</a></li>']),
        "\n".join(body),
        renew,
    )
    return Report(html, made, tables, runs.tidy(found.runs, made))


def compared(
    every: Sequence[Run], by: Sequence[str], named: Mapping[Path, str] | None = None
) -> dict[tuple[str, ...], dict[str, list[Run]]]:
    """Return runs by environment, agent and scale, and there by method.

    Trunks are no runs of a method. Methods have the names that `named` gives, or values of `by`.
    """
    trunks = forks.only_trunks(every)
    found: dict[tuple[str, ...], dict[str, list[Run]]] = {}
    told = (run for run in every if run not in trunks)
    for key, alike in group(told, ("env", "agent", "scale")).items():
        methods: dict[str, list[Run]] = {}
        for run in alike:
            name = _label(run, by) if named is None else named[run.folder]
            methods.setdefault(name, []).append(run)
        found[key] = methods if named is not None else dict(sorted(methods.items()))
    return found


def _label(run: Run, by: Sequence[str]) -> str:
    """Return the name of a run's method.

    A setting that its kind of replay does not have is left out: what remains is its name. Runs
    whose buffer was cleared are a method of their own.
    """
    values = [str(run.setting(path)) for path in by if run.has(path)]
    cleared = run.setting("replay.clear_at_change")
    control = f", cleared at change {cleared}" if cleared else ""
    return (" ".join(values) or str(run.setting("replay"))) + control


def _kinds(groups: Iterable[Mapping[str, Sequence[Run]]]) -> dict[str, str]:
    """Return which kind of replay each method has; of its first run, if they differ in that."""
    return {
        method: str(its_runs[0].setting("replay"))
        for methods in groups
        for method, its_runs in methods.items()
    }


def _compare(
    number: int, key: tuple[str, ...], methods: dict[str, list[Run]], baseline: str
) -> Section:
    """Return a section, with the baseline ahead of what is compared with it."""
    ahead = {baseline: methods[baseline]} if baseline in methods else {}
    name = re.sub(r"[^a-z0-9]+", "-", "-".join(key).lower()).strip("-")
    return section(key, f"{number}-{name}", ahead | methods, baseline)


def assemble(
    title: str, subtitle: str, contents: str, body: str, renew: float | None = None
) -> str:
    """Return a page of its own around HTML: `contents` are list items, `body` sections.

    A browser loads it again every `renew` seconds, if given, and stays where it was.
    """
    script = _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _fill(
        _file("template.html"),
        title=title,
        renew="" if renew is None else f'<meta http-equiv="refresh" content="{renew:g}">',
        policy="default-src 'none'; img-src data:; media-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'",
        subtitle=subtitle,
        contents=contents,
        body=body,
        script=script,
    )


def _section(part: Section, number: int) -> str:
    html = [f'<section id="part-{number}"><h2>{escape(part.title)}</h2>{_key(part.methods)}']
    html += [f'<p class="verdict">{escape(verdict)}</p>' for verdict in part.verdicts]
    if not part.tables:
        html.append("<p>These runs have recorded nothing to compare yet.</p>")
    figures = [figure_html(each.chart, f"{number}-{i}") for i, each in enumerate(part.figures)]
    lead = 1 if part.verdicts else 0  # the figure that goes with the verdict
    html += [*figures[:lead], *(table.html() for table in part.tables), *figures[lead:]]
    if part.small:
        small = "".join(
            figure_html(each.chart, f"{number}-r{i}") for i, each in enumerate(part.small)
        )
        html.append(f"<h3>Every run</h3>{_key(part.methods)}<div class=grid>{small}</div>")
    for position, (method, its_runs) in enumerate(part.methods.items()):
        if method in part.stored:
            run, steps = part.stored[method]
            html += [
                f"<h3>What {escape(method)} replays: {escape(run.name)}</h3>",
                f'<p class="faint">{EXPLAINED}</p>',
                f"<figure>{explorer(run, steps, number * 100 + position)}</figure>",
            ]
        html.append(_last_video(method, its_runs))
    return "".join([*html, "</section>"])


def _key(methods: Iterable[str]) -> str:
    """Return as HTML which colour is whose."""
    named = ((chart.color(each).replace(chart.INK, "currentColor"), each) for each in methods)
    spans = (f'<span><i style="background:{c}"></i>{escape(each)}</span>' for c, each in named)
    return f'<div class="key">{"".join(spans)}</div>'


def _last_video(method: str, its_runs: Sequence[Run]) -> str:
    """Return as HTML what the model of a method dreamt last."""
    folders = [run.folder / VIDEOS for run in its_runs if not (run.folder / VIDEOS).is_symlink()]
    videos = [video for folder in folders for video in sorted(folder.glob("open-loop-*"))]
    return _video(videos[-1], method) if videos else ""


def _video(path: Path, method: str) -> str:
    caption = f"{method}: what happened, what the model dreamt, the difference ({path.name})."
    return video_html(path, caption)


def video_html(path: Path, caption: str) -> str:
    """Return the HTML of a video inside the page, named only if it is too large for it."""
    try:
        with open_file(path) as file:
            content = file.read(VIDEO_BYTES + 1)
    except UnreadableError as error:
        return f"<p>{escape(caption)} It cannot be shown: {escape(str(error))}</p>"
    if len(content) > VIDEO_BYTES:
        return f"<p>{escape(caption)} It is too large for this page.</p>"
    data = base64.b64encode(content).decode()
    if path.suffix == ".gif":
        shown = f'<img class="video" alt="" src="data:image/gif;base64,{data}">'
    else:
        source = f"data:video/mp4;base64,{data}"
        shown = f'<video controls loop muted playsinline src="{source}"></video>'
    return f"<figure>{shown}<figcaption>{escape(caption)}</figcaption></figure>"


def figure_html(drawn: chart.Chart, prefix: str) -> str:
    """Return the HTML of a chart inside the page.

    Its text takes the page's colour, its names are its own.
    """
    svg = drawn.svg()
    svg = svg[svg.index("<svg") :].replace(chart.INK, "currentColor")
    seen: dict[str, int] = {}

    def named(found: re.Match[str]) -> str:
        """Return a name for each element; what matplotlib defines twice it defines alike."""
        seen[found[1]] = seen.get(found[1], 0) + 1
        again = f"-{seen[found[1]]}" if seen[found[1]] > 1 else ""
        return f'id="f{prefix}-{found[1]}{again}"'

    svg = re.sub(r'\bid="([^"]*)"', named, svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\1f{prefix}-", svg)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    caption = escape(drawn.caption)
    wide = drawn.figure.get_figwidth() * 72
    svg = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg [^>]*?) height="[^"]*"', r"\1", svg, count=1)
    opening = f'<svg role="img" aria-label="{caption}" style="--wide:{wide:.0f}" '
    svg = svg.replace("<svg ", opening, 1)
    return (
        f'<figure><div class="chart" tabindex="0">{svg}</div>'
        f"<figcaption>{caption}</figcaption></figure>"
    )


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _fill(template: str, **values: str) -> str:
    """Put values into {{places}}, once: what is put in is not looked at again."""
    return re.sub(r"\{\{(\w+)\}\}", lambda place: values[place[1]], template)
