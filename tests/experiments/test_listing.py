"""The page of experiments is what the catalogue says, and its example works."""

import re
from pathlib import Path

from curious_replay.experiments import catalogue, jobs, listing
from curious_replay.run.settings.config import SCALES

PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"


def test_the_page_is_up_to_date():
    made = listing.markdown()
    assert made in PAGE.read_text(), (
        "put what `python -m curious_replay.experiments.listing` prints at the end of the page"
    )
    for name in catalogue.experiments():
        assert f"\n## {name}\n" in made


def test_every_table_and_figure_is_named():
    where = "; ".join(each.where for each in catalogue.experiments().values())
    found = {"Figure": set(), "Table": set()}
    for kind, numbers in re.findall(r"(Figure|Table)s? ((?:\d+|, | and | to )+)", where):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", numbers):
            found[kind] |= {*range(int(first), int(last or first) + 1)}
    without = {1, 6, 17}  # no measurement of agents, as the page says
    assert found == {"Figure": {*range(1, 25)} - without, "Table": {*range(1, 12)}}
    assert "Figures 1 (the idea), 6 (mice) and 17 (pictures of" in PAGE.read_text()


def test_the_example_of_the_page_is_an_experiment(tmp_path, own_parts):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "mine.py"
    path.write_text(code)
    found = catalogue.find(str(path))
    assert found.name == "slower-decay"
    for scale in SCALES:
        slower = jobs.jobs(found, scale)[1]
        assert slower.name == "toy-mirror-dreamerv3-curious-replay.beta=0.9-seed=0"


def test_shared_runs_are_counted_once():
    interaction, cleared = map(catalogue.find, ("object-interaction", "cleared-buffer"))
    assert listing.cost([interaction], "mini", 1).runs == 3
    assert listing.cost([cleared], "mini", 1).runs == 3
    both = listing.cost([interaction, cleared], "mini", 1)
    assert both.runs == 4
    assert str(both) == f"4 runs, {both.updates / 1000:.3g}K updates"
    # 35,000 steps, 500 of them random; 16 replayed for each, 5 x 25 in an update; 50 before.
    assert both.updates == 4 * (50 + int(34_500 * 16 / 125))
    assert str(listing.Cost(2, 1_234_567)) == "2 runs, 1.23M updates"


def test_numbers_of_the_paper():
    made = listing.markdown()
    assert "| DreamerV3 CR | 19.4 ± 1.6 |" in made
    assert "| DreamerV2 | 131000 | 533000 | never | 46000 | 7000 | 1000 |" in made
    assert "| control/acrobot_swingup | 172.9 | 210 | 36.3 | 321.5 |" in made
    assert "| mean over tasks | 734.8 | 739.6 | 643.6 | 715.7 |" in made
