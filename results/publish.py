"""Results that are kept with the code, and the pages made from them.

    python results/publish.py out/object-interaction-mini          take over what a sweep left there
    python results/publish.py out/object-interaction-mini --add    add its seeds to what is here;
                                                                   runs that another experiment
                                                                   shares with it count too
    python results/publish.py                                      write all pages anew
    python results/publish.py --check                              only say what is out of date

A folder here holds results.json (every run's numbers, the command, the commit, the time it took),
figures, and a README.md that is made from it, as is the part of the project's README on results.
"""

import argparse
import shutil
import sys
from math import nan
from pathlib import Path

from curious_replay.analysis import stats
from curious_replay.experiments import catalogue, design, miniatures
from curious_replay.experiments.experiment import Experiment
from curious_replay.experiments.jobs import jobs
from curious_replay.experiments.measured import judged_anew, pooled, shared
from curious_replay.experiments.miniatures import answers
from curious_replay.experiments.page import bars
from curious_replay.experiments.results import LADDER, PAIRED, MeasureResult, Results, Row
from curious_replay.experiments.verdict import Compared
from curious_replay.report.tables import number
from curious_replay.run.record.files import read_json, write_json

HERE = Path(__file__).parent
README = HERE.parent / "README.md"
ANSWERS, RESULTS = "answers", "results"
"""Parts of the README that are made from results."""
MINIATURES = (
    "Small worlds and agents that keep the ratios on which the effect of Curious Replay hangs. "
    "Settings were chosen on seeds 0 to 2 and registered with the claims; the verdicts are of "
    "others. [What shrinks and what stays](../../docs/miniatures.md). Each claim is "
    "held, not shown or contradicted by pairs of runs that differ in nothing but what they replay."
)
BESIDE = "figure-7.svg"
"""What figure7.py draws of an experiment beside another."""
CURVES = ("contacts", "model-error", "return")
"""Figures of a sweep that are kept, by the end of their names."""


def main() -> int:
    """Do what was asked for; 1 if `--check` finds a page that is out of date."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("sweep", type=Path, nargs="*", help="what `curious sweep` wrote")
    parser.add_argument(
        "--add",
        action="store_true",
        help="keep seeds that it does not have, and those of runs that others share",
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    for sweep in options.sweep:
        take_over(sweep, options.add)
    old = []
    for path, text in pages().items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        old.append(path)
        if not options.check:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    if options.check and old:
        names = ", ".join(str(path.relative_to(HERE.parent)) for path in old)
        print(f"out of date: {names}; run python results/publish.py", file=sys.stderr)
        return 1
    return 0


def take_over(sweep: Path, add: bool) -> None:
    """Keep what is small: every run's numbers, their bars, and curves if all are of one sweep."""
    target = HERE / sweep.name
    results, kept = _read(sweep / "results.json"), target / "results.json"
    experiment = catalogue.find(results.experiment)
    if add and kept.exists():
        results = pooled(experiment, _read(kept), results)
    if add:
        results = _with_shared_runs(experiment, results)
    target.mkdir(exist_ok=True)
    write_json(kept, results.to_json())
    for figure in target.glob("*.svg"):
        if figure.name != BESIDE:
            figure.unlink()
    for drawn in bars(experiment, results):
        drawn.chart.save(target / drawn.name, ("svg",))
    if len(results.made) > 1:
        return  # curves would be of a part of the runs in the tables
    for figure in sorted((sweep / "figures").glob("*.svg")):
        if figure.stem.endswith(CURVES):
            shutil.copy(figure, target)


def _with_shared_runs(experiment: Experiment, results: Results) -> Results:
    """With what other experiments here measured of the same runs."""
    for path in sorted(HERE.glob("*/results.json")):
        other = _read(path)
        if other.scale == results.scale and other.experiment != experiment.name:
            found = shared(experiment, catalogue.find(other.experiment), other)
            if found is not None:
                results = pooled(experiment, found, results)
    return results


def pages() -> dict[Path, str]:
    """All pages that are made from results, by their path."""
    found = {path.parent: _read(path) for path in sorted(HERE.glob("*/results.json"))}
    made = {folder / "README.md": page(folder, results) for folder, results in found.items()}
    named = {results.experiment: results for results in found.values()}
    made[HERE / "miniatures" / "README.md"] = _miniatures(named)
    made[README] = _readme(found)
    return made


def _miniatures(found: dict[str, Results]) -> str:
    """The paper's questions, answered by the miniatures that were judged so far."""
    lines = ["# The paper's questions in miniature", "", MINIATURES, "", *_answers(found), ""]
    for experiment in miniatures.MINIATURES:
        results = found.get(experiment.name)
        if results is None:
            lines += [f"- {experiment.title} (`{experiment.name}`): not run yet"]
        else:
            failed = [rung.name for rung in results.ladder if not rung.held]
            ladder = f"the ladder fails at: {'; '.join(failed)}" if failed else "the ladder holds"
            link = f"[{experiment.title}](../{experiment.name}-{results.scale}/README.md)"
            lines += [f"- {link}: {ladder}"]
    return "\n".join([*lines, ""])


def _answers(found: dict[str, Results]) -> list[str]:
    """Every claim with the comparisons behind it, as a table in Markdown."""
    table = answers.table(found)
    lines = [table.columns, ["---"] * len(table.columns), *table.rows]
    rows = [f"| {' | '.join(map(str, line))} |" for line in lines]
    return [*rows, "", table.caption]


def page(folder: Path, results: Results) -> str:
    """One experiment: verdict, tables, figures, every run, how it was made."""
    lines = [f"# {results.title}", "", f"{results.where}, {results.scale} scale.", ""]
    for claim in results.claims:
        lines += [f"**{claim.word.capitalize()}.** {claim.verdict}", ""]
    for said in design.how(catalogue.find(results.experiment)):
        lines += [said, ""]
    lines += [*_ladder(results), *_pairs(results)]
    for measure in results.measures:
        lines += [*table(measure), ""]
    lines += [f"![{path.stem}]({path.name})" for path in sorted(folder.glob("*.svg"))]
    lines += ["", "## Every run", ""]
    for measure in results.measures:
        lines += [f"{measure.name}, by seed:", ""]
        lines += [f"- {row.task}, {row.method}: {_by_seed(row)}" for row in measure.rows]
        lines += [""]
    lines += ["## How", "", *_settings(results), ""]
    for made in results.made:
        lines += [
            f"    {made['command']}", "",
            f"Commits {', '.join(made['commits'])}; {made['runs']} of {made['wanted']} runs "
            f"complete, {made['hours']:.1f} hours of computing in all, one thread each, on "
            f"machines with {' or '.join(made['cores'])} CPU threads.", "",
        ]  # fmt: skip
    return "\n".join(lines)


def _settings(results: Results) -> list[str]:
    """What the presets of the runs say, and the rule of each method."""
    first, *_ = found = jobs(catalogue.find(results.experiment), results.scale, seeds=1)
    train, (ratio, batch) = first.config.train, first.config.updates_per_step
    pixels = first.config.env.image_size
    rules = {job.method.name: job.config.replay.rule() for job in found}
    begin = ""
    if first.trunk is not None:
        begin = f", the first {first.trunk.config.train.steps:,} in the trunk"
        rules = {"trunk": first.trunk.config.replay.rule(), **rules}
    return [
        f"Each run has {train.steps:,} steps{begin}, images of {pixels} x {pixels} pixels, and an "
        f"update with {train.batch_size} x {train.batch_length} steps every {batch / ratio:g} "
        "steps. The rules of replay:",
        "",
        *(f"- {name}: `{rule}`" for name, rule in rules.items()),
    ]


def table(measure: MeasureResult) -> list[str]:
    """A measure as a table in Markdown: mean, standard error, interval, the paper's number."""
    better = "less" if measure.lower_is_better else "more"
    rows = [
        f"| {measure.name} ({better} is better) | runs | with result | mean ± s.e.m. "
        "| IQM, 95 % interval | paper, at its scale |",
        "|---|---|---|---|---|---|",
    ]
    for row in measure.rows:
        whole, middle = stats.summary(row.numbers), stats.interval([row.numbers], seed=0)
        spread = f" ± {number(whole.sem)}" if whole.n > 1 else ""
        between = f"{number(middle.value)} ({number(middle.low)} to {number(middle.high)})"
        rows.append(
            f"| {row.task}, {row.method} | {len(row.seeds)} | {whole.n} "
            f"| {number(whole.mean)}{spread} | {between} | {row.paper or '–'} |"
        )
    return rows


def _ladder(results: Results) -> list[str]:
    """What must hold before methods are compared, as a table in Markdown."""
    if not results.ladder:
        return []
    rows = ["| rung | must be | median | by seed | held |", "|---|---|---|---|---|"]
    for rung in results.ladder:
        median, *values = (
            number(nan if each is None else each) for each in (rung.median, *rung.values)
        )
        held = "yes" if rung.held else "**no**"
        rows.append(f"| {rung.name} | {rung.bound} | {median} | {', '.join(values)} | {held} |")
    return [*rows, "", LADDER, ""]


def _pairs(results: Results) -> list[str]:
    """All comparisons of pairs as a table in Markdown; none of runs that are groups."""
    rows = [
        "| seed by seed | pairs | better | ties | effect, 95 % interval | p | corrected | claim |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for claim in results.claims:
        for one in claim.compared:
            effect, low, high, p, corrected = (
                number(nan if each is None else each)
                for each in (one.effect, one.low, one.high, one.p, one.corrected)
            )
            rows.append(
                f"| {claim.measure}: {one.task}, {one.first} against {one.second} | {one.pairs} "
                f"| {one.better} | {one.ties} | {effect} ({low} to {high}) | {p} | {corrected} "
                f"| {one.outcome} |"
            )
    return [*rows, "", PAIRED, ""] if len(rows) > 2 else []


def _by_seed(row: Row) -> str:
    numbers = [number(value) for value in row.numbers]
    if len(numbers) != len(row.seeds):
        return f"all together {', '.join(numbers)}"
    return ", ".join(f"{seed}: {text}" for seed, text in zip(row.seeds, numbers, strict=True))


def _readme(found: dict[Path, Results]) -> str:
    text = README.read_text(encoding="utf-8")
    named = {results.experiment: results for results in found.values()}
    text = _between(text, ANSWERS, _short(named))
    order = [*catalogue.experiments()]
    told = {folder: results for folder, results in found.items() if not _is_miniature(results)}
    parts = []
    for folder, results in sorted(told.items(), key=lambda item: order.index(item[1].experiment)):
        link = f"[{results.title}](results/{folder.name}/README.md)"
        claim = catalogue.find(results.experiment).claim.text
        parts += [
            f"**{link}** ({results.where}, {results.scale} scale). Claim: “{claim}.” Here: "
            f"**{results.word}**.",
            "",
        ]
        for further in results.claims[1:]:
            parts += [f"Claim: “{further.text}.” Here: **{further.word}**.", ""]
        parts += [*table(results.measures[0]), ""]
    return _between(text, RESULTS, parts)


def _between(text: str, part: str, lines: list[str]) -> str:
    """The text with these lines between the marks of a part."""
    begin, end = f"<!-- {part}: written by results/publish.py -->", f"<!-- end of {part} -->"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}\n\n" + "\n".join(lines) + f"\n{end}{after}"


def _short(found: dict[str, Results]) -> list[str]:
    """The questions with the verdicts on the leading claims, and the numbers behind them."""
    rows = ["| | Claim | Verdict | Medians of seeds |", "|---|---|---|---|"]
    before = None
    for answer in filter(lambda each: each.leading, answers.judged(found)):
        question, results = answer.question, answer.results
        told = "" if question is before else f"**{question.name}** {question.text}"
        claim = f"[{answer.claim.text}](results/{results.experiment}-{results.scale}/README.md)"
        numbers = "<br>".join(_in_short(answer, one) for one in answer.claim.compared)
        rows.append(f"| {told} | {claim} | {answer.claim.word} | {numbers or '–'} |")
        before = question
    return [*rows, ""]


def _in_short(answer: answers.Answer, one: Compared) -> str:
    said = catalogue.find(answer.results.experiment).claims[answer.which]
    ahead = f"; ahead on {one.better} of {one.pairs}" if said.kind == "better" else ""
    return f"{answer.medians(one)}{ahead}, p = {answers.p_value(one)}"


def _is_miniature(results: Results) -> bool:
    return results.experiment in [experiment.name for experiment in miniatures.MINIATURES]


def _read(path: Path) -> Results:
    """Numbers as they were measured, in the words that the experiment has today."""
    found = Results.from_json(read_json(path), str(path))
    return judged_anew(catalogue.find(found.experiment), found)


if __name__ == "__main__":
    sys.exit(main())
