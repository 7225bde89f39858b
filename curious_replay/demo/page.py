"""The demo's page: the report's page around what two models learned of a ball."""

import tempfile
from collections.abc import Sequence
from html import escape
from pathlib import Path

from curious_replay.analysis import stored
from curious_replay.analysis.load import load_run
from curious_replay.demo import figures, stream, verdict
from curious_replay.demo.branches import RULES, Trial
from curious_replay.demo.plan import Plan
from curious_replay.envs.drawing.video import write_gif
from curious_replay.report.explorer import explorer
from curious_replay.report.page import EXPLAINED, assemble, figure_html, video_html
from curious_replay.run.record.video import dreams_video

VIDEO_COLUMNS, PICTURES_PER_SECOND = 4, 4.0
SECTIONS = {"result": "Result", "dreams": "Dreams", "replay": "What is replayed", "how": "How"}


def make_page(
    trials: Sequence[Trial], plan: Plan, replay: Path, seeds_wanted: int, seconds: float
) -> str:
    """Return the whole page as HTML; `replay` is where the first trial left what it replays."""
    body = {
        "result": _result(trials, plan, seeds_wanted),
        "dreams": _dreams(trials[0], plan),
        "replay": _replay(trials, plan, replay),
        "how": _how(plan),
    }
    return assemble(
        "Curious Replay: a ball appears",
        f"Seeds: {len(trials)}, {seconds / 60:.1f} minutes on this machine",
        "".join(f'<li><a href="#{key}">{title}</a></li>' for key, title in SECTIONS.items()),
        "".join(
            f'<section id="{key}"><h2>{title}</h2>{body[key]}</section>'
            for key, title in SECTIONS.items()
        ),
    )


def _result(trials: Sequence[Trial], plan: Plan, seeds_wanted: int) -> str:
    html = [
        "<p>A small world model has learned an empty arena by heart. Then a magenta ball appears, "
        "and two copies of the model learn on: one replays all that it remembers alike, the other "
        "what it has seen least or models worst. They get the same new pictures and differ in "
        "nothing else. Which of them knows the ball first?</p>"
    ]
    said = verdict.sentences(trials, plan)
    if len(trials) < seeds_wanted:
        said.append(f"Time was up after {len(trials)} of {seeds_wanted} seeds.")
    html += [f'<p class="verdict">{escape(each)}</p>' for each in said]
    html += [figure_html(figures.story(trials, plan), "story")]
    html += [verdict.table(trials, plan).html()]
    return "".join(html)


def _dreams(trial: Trial, plan: Plan) -> str:
    """Show both models beside the truth, as a video; return it as HTML."""
    truth = trial.truth[:VIDEO_COLUMNS]
    models = {name: each.dream[:VIDEO_COLUMNS] for name, each in trial.branches.items()}
    pictures = dreams_video(truth, models, plan.seen)
    with tempfile.TemporaryDirectory() as folder:
        video = Path(folder) / "dreams.gif"  # moves by itself, in every browser
        write_gif(pictures, video, zoom=1, pictures_per_second=PICTURES_PER_SECOND)
        return video_html(
            video,
            f"Seed {trial.seed} after {plan.updates} updates: what happened, and what both models "
            f"make of it. They see {plan.seen} steps (green), then know only the actions (orange).",
        )


def _replay(trials: Sequence[Trial], plan: Plan, replay: Path) -> str:
    html = [
        figure_html(figures.shares(trials, plan), "shares"),
        f"<p>{EXPLAINED} Seed {trials[0].seed}, after {plan.updates} updates.</p>",
    ]
    for number, name in enumerate(RULES):
        run = load_run(replay / name)
        steps = stored.newest(run)
        assert steps is not None, f"the demo left no replay in {run.folder}"
        html += [
            f"<h3>What {name} replay replays</h3>",
            f"<figure>{explorer(run, steps, number)}</figure>",
        ]
    return "".join(html)


def _how(plan: Plan) -> str:
    said = (
        f"The stream: {plan.arenas} arenas of the object-interaction assay at small scale, driven "
        f"through by chance, {plan.before} steps each while they are empty and {plan.after} more "
        f"with the ball, seen at {stream.PIXELS} x {stream.PIXELS} pixels. A seed decides drives, "
        "weights and draws.",
        "The model: a recurrent network whose state is a map of features that actions move and "
        f"looking corrects; batches of {plan.windows} windows of {plan.length} steps, of which the "
        f"first {plan.seen} are seen and the others predicted; learning rate "
        f"{plan.learning_rate:g}. All of this is the same for both.",
        f"Before the ball: {plan.shared_updates:,} updates shared by both, drawn uniformly, until "
        f"each step was trained on {plan.visits} times on average. After: {plan.updates:,} updates "
        f"each; every {plan.updates_per_step} of them, each arena adds a step.",
        f"The test: up to {plan.test_windows} windows of drives that are never trained on, with "
        f"the ball in view. A model sees {plan.seen} steps and predicts {plan.ahead} more from the "
        "actions alone; the error is the mean squared difference on the pixels of the real ball, "
        "every picture counting alike.",
        f"Modelled: at most {verdict.MODELLED:.0%} of the error that the shared model had when the "
        "ball appeared is left. This was decided before it was known who wins.",
    )
    return "".join(f"<p>{escape(each)}</p>" for each in said)
