"""What the page shows of one environment and agent: a verdict, tables, charts."""

from curious_replay.analysis import stats, stored
from curious_replay.analysis.load import Run
from curious_replay.report import figures, headline, replaying, retained
from curious_replay.report import measures as m
from curious_replay.report.each_run import each_run
from curious_replay.report.parts import Section


def section(key: tuple[str, ...], name: str, methods: m.Methods, baseline: str) -> Section:
    """Look at everything the runs of an environment, agent and scale (`key`) have."""
    found = m.measures(methods)
    made = Section(", ".join(key), name, key, methods, found, _first_stored(methods))
    for number, measure in enumerate(found):
        tests = headline.tests(measure, baseline)
        if number == 0:
            made.verdicts.append(headline.verdict(measure, tests))
            made.figures.append(headline.bars(f"{name}-headline", measure, tests))
        elif measure.never and any(len(stats.finite(v)) for v in measure.values.values()):
            file = f"{name}-{measure.name.replace(' ', '-')}"
            made.figures.append(headline.bars(file, measure, tests))
    made.verdicts.extend(headline.missing_seeds(methods))
    made.verdicts.extend(headline.shared_trunks(methods))
    if found:
        made.tables.append(headline.table_of(name, found, baseline))
        made.figures.extend(headline.profile(f"{name}-profile", found[0]))
    for make in (
        figures.curves, figures.interactions, figures.pixels, figures.errors, figures.spectrum,
        figures.shares,
    ):  # fmt: skip
        made.figures.extend(make(name, methods))
    made.tables.extend(retained.forgetting_table(name, methods))
    made.tables.extend(replaying.by_resource(name, methods))
    made.tables.extend(replaying.by_phase(name, made))
    made.figures.extend(figures.trajectories(name, made))
    made.figures.extend(replaying.along_the_buffer(name, made))
    made.small.extend(each_run(name, methods))
    return made


def _first_stored(methods: m.Methods) -> dict[str, tuple[Run, stored.Stored]]:
    found: dict[str, tuple[Run, stored.Stored]] = {}
    for method, runs in methods.items():
        for run in runs:
            steps = stored.newest(run)
            if steps is not None and len(steps):
                found[method] = (run, steps)
                break
    return found
