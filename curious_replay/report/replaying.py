"""What is replayed: along the buffer, by age, by phase and, in Crafter, by resource held."""

from collections.abc import Iterator, Mapping

import numpy as np

from curious_replay.analysis import crafter, crafter_replay, plots, replay_probe, snapshots, stats
from curious_replay.analysis.load import Run
from curious_replay.report import measures as m
from curious_replay.report.parts import POINTS, Figure, Section, changes_of
from curious_replay.report.tables import Cell, Table


def along_the_buffer(name: str, part: Section) -> list[Figure]:
    """Draw chances and visits by the frame at which a step was seen, and by its age."""
    frames = {
        method: replay_probe.profile(steps.frame, steps.chance, steps.visits, POINTS)
        for method, (_, steps) in part.stored.items()
    }
    ages = {
        method: replay_probe.profile(steps.age, steps.chance, steps.visits, POINTS)
        for method, (_, steps) in part.stored.items()
    }
    for method, runs in part.methods.items():  # where checkpoints are gone
        seen = next(filter(None, map(snapshots.newest, runs)), None)
        if method not in ages and seen is not None:
            ages[method] = replay_probe.profile(seen.age, seen.chance, seen.visits, POINTS)
    made = []
    if frames:
        drawn = plots.replay_view(frames, changes=changes_of(part.methods))
        made.append(Figure(f"{name}-replay", drawn))
    if ages:
        caption = "The same by age: the newest steps are on the left."
        drawn = plots.replay_view(ages, xlabel="steps stored since", caption=caption)
        made.append(Figure(f"{name}-replay-age", drawn))
    return made


def by_phase(name: str, part: Section) -> list[Table]:
    """Return how much of the buffer, of the next draws and of all visits belongs to each phase."""
    rows: list[list[Cell]] = []
    for method, runs in part.methods.items():
        found: dict[str, list[tuple[float, ...]]] = {}
        for run in runs:
            for phase, numbers in _phases(run):
                found.setdefault(phase, []).append(numbers)
        for phase, of_runs in found.items():
            means = np.mean(of_runs, axis=0)
            rows.append([f"{method}: {phase}", len(of_runs), *(100 * means[:3]), *means[3:]])
    columns = (
        "method: phase",
        "runs",
        "% of buffer",
        "% of draws",
        "% of visits",
        "chance",
        "visits",
        "% by count",
    )
    caption = (
        "What is replayed by phase, from the last snapshot of each run. Draws: those that come "
        "next; visits: all so far of what is stored. Chance: that of a step to be drawn, relative "
        "to uniform replay; visits: of a step. By count: how many of its draws are due to the "
        "count term."
    )
    several = len({str(row[0]).rpartition(": ")[2] for row in rows}) > 1
    return [Table(f"{name}-by-phase", caption, columns, rows)] if several else []


def _phases(run: Run) -> Iterator[tuple[str, tuple[float, ...]]]:
    """Yield the name and the numbers of `by_phase` of each phase in a run's last snapshot."""
    seen = snapshots.newest(run)
    if seen is None or not len(seen.ids):
        return
    profile = replay_probe.by_phase(seen.phase, seen.chance, seen.visits)
    draws, visits = profile.chance * profile.count, profile.visits * profile.count
    for i, phase in enumerate(profile.position.astype(int)):
        shares = [each[i] / max(each.sum(), 1e-300) for each in (profile.count, draws, visits)]
        inside = seen.phase == phase
        novelty = 100 * seen.chance_by_count[inside].sum() / max(seen.chance[inside].sum(), 1e-300)
        yield str(seen.phases[phase]), (*shares, profile.chance[i], profile.visits[i], novelty)


def by_resource(name: str, methods: m.Methods) -> list[Table]:
    """Return the paper's Tables 9, 7 and 8 of Crafter, as far as the runs can tell."""
    if not m.is_crafter(methods):
        return []
    made = [_steps_to_success(name, methods)]
    if any(snapshots.paths(run) for run in m.all_runs(methods)):
        budget = crafter.budget_of(m.all_runs(methods))
        sampled = {
            each: crafter_replay.sampling_by_resource(methods[each], budget) for each in methods
        }
        trained = {each: crafter_replay.training_by_resource(methods[each]) for each in methods}
        made += [
            _relative(
                f"{name}-sampling-by-resource", sampled,
                "Chance of steps that hold a resource to be drawn, relative to uniform replay: "
                "median over steps, mean over runs; from the snapshot after success has reached "
                "1 % (paper: Table 7).",
            ),
            _relative(
                f"{name}-training-by-resource", trained,
                "How often steps that hold a resource were trained on, relative to uniform replay: "
                "mean over steps and runs; from the first snapshot that has one (paper: Table 8).",
            ),
        ]  # fmt: skip
    return made


def _steps_to_success(name: str, methods: m.Methods) -> Table:
    reached = {
        method: crafter.steps_to_success(
            [*map(crafter.episodes_of, runs)], budget=crafter.budget_of(m.all_runs(methods))
        )
        for method, runs in methods.items()
    }
    rows: list[list[Cell]] = [
        [
            achievement.replace("_", " "),
            *(reached[method][crafter.SPECTRUM.index(achievement)] for method in methods),
        ]
        for achievement in crafter.PROGRESSION
    ]
    caption = (
        "Steps until the average agent succeeds in 1 % of episodes, in a moving average over "
        "20,000 steps; –: never (paper: Table 9)."
    )
    return Table(f"{name}-steps-to-success", caption, ("achievement", *methods), rows)


def _relative(
    name: str, found: Mapping[str, Mapping[str, crafter_replay.Relative]], caption: str
) -> Table:
    columns = [c for method in found for c in (method, "runs", "at step")]
    rows: list[list[Cell]] = []
    for resource in crafter_replay.FOUND_BY:
        row: list[Cell] = [resource.replace("_", " ")]
        for of_method in found.values():
            values, steps = of_method[resource].values, of_method[resource].steps
            whole = stats.summary(values)
            row += [whole.mean, whole.n, stats.summary(steps).mean]
        rows.append(row)
    return Table(name, caption, ("resource", *columns), rows)
