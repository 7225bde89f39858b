"""One page for all miniatures: the answers first, then each with its ladder and tables."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from curious_replay.experiments import design
from curious_replay.experiments.experiment import Experiment
from curious_replay.experiments.miniatures import answers
from curious_replay.experiments.page import bars
from curious_replay.experiments.results import Results
from curious_replay.report.page import assemble, figure_html


def write(found: Sequence[tuple[Experiment, Results]], out: Path) -> None:
    """Write report.html into a folder that has those of the experiments in folders below."""
    answered = answers.table({result.experiment: result for _, result in found})
    body = [f'<section id="answers"><h2>Answers</h2>{answered.html()}</section>']
    links = ['<li><a href="#answers">Answers</a></li>']
    for number, (experiment, result) in enumerate(found):
        body.append(_section(experiment, result, number))
        links.append(f'<li><a href="#{result.experiment}">{escape(result.title)}</a></li>')
    out.mkdir(parents=True, exist_ok=True)
    page = assemble(
        "Curious Replay in miniature",
        f"{len(found)} experiments at {found[0][1].scale} scale",
        "".join(links),
        "\n".join(body),
    )
    (out / "report.html").write_text(page, encoding="utf-8")


def _section(experiment: Experiment, result: Results, number: int) -> str:
    link = f"{result.experiment}/report.html"
    said = [*(claim.verdict for claim in result.claims), *design.how(experiment)]
    return "".join([
        f'<section id="{result.experiment}"><h2>{escape(result.title)}</h2>',
        *(f'<p class="verdict">{escape(each)}</p>' for each in said),
        *(figure_html(figure.chart, f"{number}-{i}")
          for i, figure in enumerate(bars(experiment, result))),
        *(table.html() for table in result.tables()),
        f'<p><a href="{link}">Curves, runs and what was replayed</a></p></section>',
    ])  # fmt: skip
