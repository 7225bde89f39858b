"""What experiments on tasks with a goal share: measures of how it is reached, and their ladder."""

from typing import NamedTuple

from curious_replay.analysis import returns
from curious_replay.analysis.lines import Array
from curious_replay.analysis.load import Run
from curious_replay.experiments.experiment import Claim, Measure, each
from curious_replay.experiments.ladder import Footing, Rung
from curious_replay.experiments.miniatures.shared import arms
from curious_replay.experiments.miniatures.shared.policies import Policy, play
from curious_replay.experiments.miniatures.shared.settled import SETTLED

SOLVED = "steps to solve it again"
SOLVED_FIRST = "steps to solve it"


def solved_sooner(than: str) -> Claim:
    """Return the claim that curious replay solves it again sooner than another kind of replay."""
    text = f"Curious Replay solves the task again sooner than {than} replay"
    return Claim(text, [(arms.CURIOUS, than)], measure=SOLVED)


class GoalTask(NamedTuple):
    """A task whose episodes end with a reward when a goal is reached."""

    within: float
    """Steps that an episode may take on average for the task to be solved."""
    oracle: Policy
    chance: Policy

    def until_solved(self, begin: int, end: int, name: str = SOLVED) -> Measure:
        """Return the measure: steps from `begin` until it is solved, at `end` at the latest."""

        def until(run: Run) -> float:
            played = run.played()
            seen = played.where(played["step"] <= end)
            rows = (seen["step"], seen["length"], seen["return"])
            return returns.steps_to_solve(*rows, begin, within=self.within)

        return Measure(name, each(until), lower_is_better=True, never=True)

    def until_learned(self, footing: Footing) -> list[float]:
        """Return the steps until each run solves its first task."""
        played = [run.played() for run in footing.runs]
        return [
            returns.steps_to_solve(p["step"], p["length"], p["return"], within=self.within)
            for p in played
        ]

    def ladder(
        self, learns: Rung, phase: str | None, steps: int, settled: Rung = SETTLED
    ) -> tuple[Rung, ...]:
        """Return its ladder: it is learned, and not solved by chance in so many steps.

        `phase` is the one in which oracle and chance play, None in a world without phases.
        """
        return (
            learns,
            settled,
            Rung(
                "steps of an oracle to solve the task",
                lambda footing: self._played(footing, self.oracle, phase, steps),
                at_most=steps / 5,
            ),
            Rung(
                "steps of a random policy to solve it",
                lambda footing: self._played(footing, self.chance, phase, steps),
                at_least=steps,
            ),
        )

    def _played(
        self, footing: Footing, policy: Policy, phase: str | None, steps: int
    ) -> list[float]:
        """Return how many of so many steps a policy needs to solve the task of a phase."""
        found = []
        for run in footing.runs:
            rows = play(footing.config, policy, phase, steps, run.seed)
            episodes = _episodes(rows["last"], rows["reward"])
            found.append(returns.steps_to_solve(*episodes, within=self.within))
        return found


def reached(begin: int, end: int) -> Measure:
    """Return the measure: how often the goal is reached from one step to another."""
    return Measure(
        f"goals reached in {end - begin:,} steps",
        each(lambda run: float(_between(run, begin, end).sum())),
    )


def mean_return(begin: int, end: int) -> Measure:
    """Return the measure: mean return of the episodes from one step to another."""

    def mean(run: Run) -> float:
        values = _between(run, begin, end)
        return float(values.mean()) if len(values) else float("nan")

    return Measure(f"mean return of episodes in {end - begin:,} steps", each(mean))


def at_the_end() -> Measure:
    """Return the measure: mean return of the last 20 episodes."""

    def mean(run: Run) -> float:
        played = run.played()
        return returns.just_before(played["step"], played["return"], run.steps_done)

    return Measure("return of the last 20 episodes", each(mean))


def retained(before: int, back: int) -> Measure:
    """Return the measure: return of 20 episodes once the old world is back, minus before T0."""

    def difference(run: Run) -> float:
        played = run.played()
        steps, lengths, values = played["step"], played["length"], played["return"]
        after = returns.just_after(steps, lengths, values, back)
        return after - returns.just_before(steps, values, before)

    return Measure("return when the old world is back, minus before", each(difference))


def _between(run: Run, begin: int, end: int) -> Array:
    """Return the returns of the episodes that began and ended between two steps."""
    played = run.played()
    inside = (played["step"] - played["length"] >= begin) & (played["step"] <= end)
    found: Array = played["return"][inside]
    return found


def _episodes(last: Array, reward: Array) -> tuple[list[int], list[int], list[float]]:
    """Return the steps at which episodes ended, their lengths, their returns."""
    ends = [index + 1 for index, ended in enumerate(last) if ended]
    begins = [0, *ends]
    lengths = [end - begin for begin, end in zip(begins, ends, strict=False)]
    sums = [float(reward[begin:end].sum()) for begin, end in zip(begins, ends, strict=False)]
    return ends, lengths, sums
