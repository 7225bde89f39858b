"""How an experiment is made and judged, in words."""

from curious_replay.experiments.experiment import Claim, Experiment, Trunk
from curious_replay.experiments.verdict import SIGNIFICANT


def claims(experiment: Experiment) -> list[str]:
    """Return each claim, what it is about where that is not the first measure, and its margin."""
    return [
        f"{claim.text}{_about(experiment, claim)}.{_margin(experiment, claim)}"
        for claim in experiment.claims
    ]


def how(experiment: Experiment) -> list[str]:
    """Return sentences on the trunk, the test, if it is of pairs, and what was registered."""
    said = []
    trunk = experiment.trunk
    if trunk is not None:
        said.append(
            f"All methods go on from the same run of each seed, which has {trunk.replay} replay "
            f"until {_end(trunk)}"
        )
    if experiment.paired:
        said.append(
            "Methods are compared seed by seed, by Wilcoxon's signed-rank test, exact; p-values "
            "are corrected for all comparisons of the experiment (Benjamini and Hochberg)"
        )
    registered = experiment.registered
    if registered is not None:
        first, last = experiment.judged[0], experiment.judged[-1]
        tuned = ", ".join(map(str, registered.tuned))
        said.append(
            f"Registered on {registered.on} for {registered.scale} scale: settings were chosen on "
            f"seeds {tuned}, and seeds {first} to {last} judge, with p < {registered.significant}"
        )
    elif experiment.paired:
        said[-1] += f". A claim holds with p < {SIGNIFICANT}"
    return [f"{each}." for each in said]


def _end(trunk: Trunk) -> str:
    if isinstance(trunk.until, int):
        return f"step {trunk.until:,}"
    if trunk.until == "change":
        return "the world first changes"
    return "step " + ", ".join(f"{step:,} ({scale} scale)" for scale, step in trunk.until.items())


def _about(experiment: Experiment, claim: Claim) -> str:
    return f" ({claim.measure})" if claim.measure not in ("", experiment.measures[0].name) else ""


def _margin(experiment: Experiment, claim: Claim) -> str:
    if claim.margin is None:
        return ""
    words = {"no worse": "No worse by", "similar": "Neither worse nor better by"}[claim.kind]
    measure = experiment.measure_of(claim)
    part = not experiment.paired or measure.by_ratio
    much = f"{claim.margin:.0%}" if part else f"{claim.margin:g} of {measure.name}"
    return f" ({words} {much}.)"
