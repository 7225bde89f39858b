"""What docs/extending.md shows is in examples/, word for word, and works."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from curious_replay import cli
from curious_replay.analysis.load import load_run
from curious_replay.replay import Curious, ReplayBuffer
from curious_replay.run.record.files import read_lines
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.replay_config import REPLAYS

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
SHOWN = ("own_rule.py", "linear_agent.py", "own_env.py", "own_measure.py")
QUIET = ["--record.no-tensorboard", "--train.threads", "1", "--eval.every", "0"]


@pytest.fixture
def example(monkeypatch):
    """Load an example by name; what it enters is known until the end of the test."""
    tables = (AGENTS, REPLAYS)
    before = [dict(table) for table in tables]

    def load(name):
        spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    yield load
    for table, known in zip(tables, before, strict=True):
        table.clear()
        table.update(known)


@pytest.mark.parametrize("name", SHOWN)
def test_the_page_shows_the_example(name):
    page = (ROOT / "docs/extending.md").read_text()
    code = (EXAMPLES / name).read_text()
    assert f"```python\n{code}```\n\n([examples/{name}](../examples/{name}))" in page


def test_the_page_names_only_files_that_are_there():
    named = re.findall(
        r"`((?:curious_replay|tests|examples)/[\w/.]+)`", (ROOT / "docs/extending.md").read_text()
    )
    assert len(named) > 10
    assert not [name for name in named if not (ROOT / name).exists()]


def test_the_rule_counts_a_loss_up_to_its_cap(example):
    rule = example("own_rule").Capped(cap=1.0)
    visits, loss = np.array([0, 3]), np.array([0.5, -9.0])
    expected = Curious()(visits, {"model": np.array([0.5, 1.0])})
    np.testing.assert_allclose(rule(visits, {"model": loss}), expected)
    buffer = ReplayBuffer(capacity=8, length=2, rule=rule)
    for _ in range(3):
        buffer.add(dict.fromkeys(("is_first", "is_last", "is_terminal"), np.zeros(1, bool)))
    batch = buffer.sample(1)
    buffer.update(batch.ids, {"model": np.full(batch.ids.shape, 9.0)})
    np.testing.assert_allclose(
        buffer.priorities(batch.ids)[0, -1], rule(np.array([0]), {"model": np.ones(1)})
    )


def test_the_agent_learns_with_the_rule_in_the_environment_and_resumes(
    example, tmp_path, monkeypatch, capsys
):
    """Three examples in one run: `curious train` knows all of them."""
    monkeypatch.syspath_prepend(EXAMPLES)
    example("own_rule")
    example("linear_agent")
    names = ["--env", "own_env:Windy", "--agent", "linear", "--replay", "capped"]
    settings = [
        "--replay.cap",
        "2",
        "--env.arguments-json",
        '{"change": 200}',
        "--agent.lr",
        "0.02",
    ]
    lengths = ["--train.steps", "400", "--train.log-every", "50", "--train.save-every", "150"]
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    arguments = ["train", *names, *settings, *lengths, *QUIET]
    assert cli.main([*arguments, "--logdir", str(whole)]) == 0, capsys.readouterr().err
    assert cli.main([*arguments, "--logdir", str(resumed), "--train.steps", "250"]) == 0
    assert cli.main(["train", "--logdir", str(resumed), "--resume", "--train.steps", "400"]) == 0
    for file in ("metrics.jsonl", "episodes.jsonl"):
        assert (whole / file).read_bytes() == (resumed / file).read_bytes()
    config = json.loads((whole / "config.json").read_text())
    assert config["replay"]["cap"] == 2.0
    losses = [line["model/loss"] for line in read_lines(whole / "metrics.jsonl")[2:]]
    assert losses[-1] < 0.5 * losses[0]
    assert load_run(whole).changes == ((0, "calm"), (200, "windy"))
    phases = {line["phase"] for line in read_lines(whole / "episodes.jsonl")}
    assert phases == {"calm", "windy"}


@pytest.mark.parametrize("env", ["toy/count", "Pendulum-v1"])
def test_the_agent_refuses_what_it_does_not_know(env, example, tmp_path, capsys):
    example("linear_agent")
    command = ["train", "--env", env, "--agent", "linear", "--logdir", str(tmp_path / "run")]
    assert cli.main(command) == 2
    assert "needs discrete actions and numbers to see" in capsys.readouterr().err


def test_a_signal_that_the_agent_does_not_report_is_named(example, tmp_path, capsys):
    example("linear_agent")
    names = ["--env", "CartPole-v1", "--agent", "linear", "--replay", "td"]
    command = ["train", *names, "--logdir", str(tmp_path / "run"), *QUIET]
    assert cli.main(command) == 1
    assert "reads the signal 'td'" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:.*render")
def test_the_environment_is_sound_and_goes_on_from_its_state(example):
    windy = example("own_env").Windy
    check_env(windy(), skip_render_check=True)
    env, other = windy(change=5), windy(change=5)
    env.reset(seed=3)
    other.reset(seed=4)
    for _ in range(8):
        env.step(1)
    other.set_state(json.loads(json.dumps(env.get_state())))
    for _ in range(5):
        assert repr(env.step(1)) == repr(other.step(1))
    env.set_phase("calm")
    assert env.step(0)[-1]["phase"] == "calm"
    with pytest.raises(ValueError, match="cells must be at least 2, got 1"):
        windy(cells=1)


def test_the_measure_counts_failures_after_the_change(example, tmp_path, capsys):
    measure = example("own_measure")
    runs = {"curious": [1.0, 0.0, 0.0, 0.0, 1.0], "uniform": [1.0, 0.0, 0.0, 0.0, 0.0]}
    for replay, returns in runs.items():
        folder = tmp_path / replay
        folder.mkdir()
        choice = {"env": "toy/mirror", "agent": "dreamerv3", "replay": replay, "scale": "mini"}
        (folder / "config.json").write_text(json.dumps({"choice": choice, "seed": 0}))
        schedule = [[0, "straight"], [15, "mirrored"]]  # within the second episode
        (folder / "meta.json").write_text(json.dumps({"schedule": schedule}))
        lines = [
            {
                "frame": 10 * n,
                "step": 10 * n,
                "update": 0,
                "mode": "train",
                "length": 10,
                "return": value,
            }
            for n, value in enumerate(returns, start=1)
        ]
        (folder / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert measure.failures_after_the_change(load_run(tmp_path / "curious")) == 2
    assert np.isnan(measure.failures_after_the_change(load_run(tmp_path / "uniform")))
    measure.main([str(tmp_path)])
    said = capsys.readouterr().out.splitlines()
    assert said == ["curious: 2.0 failures, 1 runs: [2.0]", "uniform: nan failures, 1 runs: [nan]"]


def test_the_experiment_of_the_measure_has_its_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", str(EXAMPLES / "own_measure.py"), "--seeds", "2", "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[-1].split("-")[3] for line in said] == ["uniform", "curious"] * 2


def curious(*arguments, cwd):
    """Run a command as a user does; returns what it printed."""
    command = [sys.executable, "-m", "curious_replay.cli", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("name", "line", "option"),
    [
        ("own_rule", "--env toy/mirror --replay capped --replay.cap 2", "--replay.cap"),
        ("linear_agent", "--env CartPole-v1 --agent linear", "--agent.exploration"),
    ],
)
def test_a_command_that_imports_a_file_knows_its_options(name, line, option, tmp_path):
    path = EXAMPLES / f"{name}.py"
    assert f"curious train --import examples/{path.name} {line}\n" in path.read_text()
    helped = curious("train", "--import", path, *line.split(), "--help", cwd=tmp_path)
    assert option in helped


@pytest.mark.slow
def test_all_examples_in_one_sweep(tmp_path):
    """Its runs are processes of their own, which must know agent and environment too."""
    (tmp_path / "grid.py").write_text("""
from own_measure import failures_after_the_change
from curious_replay.experiments.experiment import Claim, Experiment, Measure, Method, each

EXPERIMENT = Experiment(
    name="grid", where="", title="", tasks=("own_env:Windy",),
    methods=(Method("u", "linear", "uniform"), Method("c", "linear", "curious")),
    measures=(Measure("failures", each(failures_after_the_change)),),
    claim=Claim("", [("c", "u")]), seeds=1,
    settings={"debug": {"env.arguments_json": '{"change": 30, "wind": 0.1}'}},
)
""")
    parts = [word for name in ("linear_agent", "own_env") for word in
             ("--import", EXAMPLES / f"{name}.py")]  # fmt: skip
    curious("sweep", "grid.py", "--scale", "debug", *parts, cwd=tmp_path)
    results = json.loads((tmp_path / "out/grid-debug/results.json").read_text())
    values = [row["values"] for row in results["measures"][0]["rows"]]
    assert len(values) == 2
    assert all(number >= 0 for row in values for number in row)
