"""Code of a user's own: imported on demand, remembered by runs, never run by them."""

import hashlib
import json
import shlex
import shutil
import sys
import textwrap
from pathlib import Path

import pytest

import curious_replay as cr
from curious_replay import cli, plugins
from curious_replay.run.record.files import write_json
from curious_replay.untrusted import UnreadableError

PARTS = """
from dataclasses import dataclass
from pathlib import Path
import os, signal
import gymnasium
import numpy as np
import curious_replay as cr
from curious_replay.experiments.experiment import Claim, Experiment, Measure, Method, each

with Path(__file__).with_name("imported").open("a") as file:
    file.write("x")


@dataclass(frozen=True)
class Config:
    ends: str = ""


def preset(family, choice):
    return {"train": {"steps": 40, "prefill": 10, "batch_size": 2, "batch_length": 4,
                      "log_every": 20, "threads": 1}, "env": {"processes": True},
            "record": {"tensorboard": False}}


class Still(cr.Agent):
    def __init__(self, config, spaces, seed, device):
        super().__init__(spaces, seed, device)
        self.config = config

    def start(self, num_envs):
        return {}

    def act(self, state, observation, generator, explore):
        return np.zeros((len(observation["is_first"]), self.spaces.actions), np.float32), state

    def update(self, batch, unread=()):
        end = Path(self.config.ends)
        if self.config.ends and end.exists():
            what = end.read_text()
            end.unlink()
            if what == "raise":
                raise RuntimeError("tired")
            os.kill(os.getpid(), signal.SIGTERM)
        return cr.Feedback({"model": np.ones(batch["reward"].shape, np.float32)}, {})

    def open_loop(self, batch, context):
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Oldest(cr.Count):
    gain: float = 2.0


class Line(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-9, 9, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.at += 1
        return np.full(1, self.at, np.float32), 0.0, False, self.at >= 5, {}


cr.register_agent("still", Config, Still, preset, predicts_images=False)
cr.register_rule("oldest", Oldest)
cr.register_env("line", Line)
cr.register_experiment(Experiment(
    name="own-grid", where="here", title="", tasks=("line",),
    methods=(Method("u", "still", "uniform"), Method("o", "still", "oldest")),
    measures=(Measure("steps", each(lambda run: run.steps_done)),),
    claim=Claim("", [("o", "u")]), seeds=1,
))
"""
NAMES = ["--env", "line", "--agent", "still", "--replay", "oldest", "--scale", "debug"]


@pytest.fixture
def folder(tmp_path, own_parts, monkeypatch):
    """Where `mine.py` is, which is not where commands are given."""
    place, home = tmp_path / "parts of mine", tmp_path / "home"
    place.mkdir()
    home.mkdir()
    (place / "mine.py").write_text(PARTS)
    monkeypatch.chdir(home)
    return place


def imports(folder):
    """How often the file was imported, in whatever process."""
    counted = folder / "imported"
    return len(counted.read_text()) if counted.exists() else 0


def trained(folder, own_parts, *options):
    """A run that was made with the file, by a process that is gone."""
    mine = ["--import", str(folder / "mine.py")]
    assert cli.main(["train", *mine, *NAMES, "--logdir", "run", *options]) == 0
    own_parts()
    return mine


def test_a_run_remembers_what_was_imported(folder, own_parts):
    trained(folder, own_parts)
    file = folder / "mine.py"
    checksum = hashlib.sha256(file.read_bytes()).hexdigest()
    expected = {"name": "mine.py", "where": str(file), "sha256": checksum}
    assert json.loads(Path("run/meta.json").read_text())["plugins"] == [expected]


@pytest.mark.parametrize(
    "command",
    [
        "train --logdir run --resume --train.steps 60",
        "eval run --episodes 1",
        "fork run --logdir branch --replay uniform --train.steps 60",
    ],
)
def test_a_run_goes_on_after_the_same_option(command, folder, own_parts, capsys):
    mine = trained(folder, own_parts)
    count = imports(folder)
    assert cli.main(command.split()) == 2
    said = capsys.readouterr().err
    assert said.startswith("curious: run was made with code of its user's own, mine.py")
    assert said.endswith(f"add {shlex.join(mine)}\n")  # which can be copied as it is
    assert imports(folder) == count
    assert cli.main([*command.split(), *mine]) == 0
    if "branch" in command:
        assert json.loads(Path("branch/meta.json").read_text())["plugins"][0]["name"] == "mine.py"


def test_reading_a_run_never_runs_its_code(folder, own_parts, capsys):
    mine = trained(folder, own_parts)
    count = imports(folder)
    assert cli.main(["report", "run", "--out", "report.html"]) == 0
    assert cr.load_run("run").setting("replay.gain") == 2
    for load in (cr.load_agent, lambda run: cr.fork(run, logdir="branch")):
        with pytest.raises(cr.UsageError) as refused:
            load("run")
        assert f"the run was made with {shlex.join(mine)}" in str(refused.value)
    assert imports(folder) == count
    assert cli.main(["report", "run", "--out", "report.html", *mine]) == 0
    assert imports(folder) == count + 1


def test_a_program_imports_its_module_itself(folder, own_parts, monkeypatch):
    trained(folder, own_parts)
    monkeypatch.syspath_prepend(folder)
    __import__("mine")
    assert cr.load_agent("run").agent.config.ends == ""


def test_a_file_that_has_changed_is_confirmed_once(folder, own_parts, capsys):
    mine = trained(folder, own_parts)
    (folder / "mine.py").write_text(f"{PARTS}\n# better\n")
    resume = ["train", "--logdir", "run", "--resume", "--train.steps"]
    assert cli.main([*resume, "60", *mine]) == 2
    said = capsys.readouterr().err
    assert "mine.py is not as it was when run was made with it" in said
    assert said.endswith(f"--import-changed {shlex.quote(mine[1])}\n")
    own_parts()
    assert cli.main([*resume, "60", f"--import-changed={mine[1]}"]) == 0
    own_parts()
    assert cli.main([*resume, "80", *mine]) == 0


@pytest.mark.parametrize(("how", "code"), [("raise", 1), ("stop", 143)])
def test_the_command_of_a_hint_works(how, code, folder, own_parts, capsys):
    (folder / "end").write_text(how)
    mine = ["--import", str(folder / "mine.py")]
    options = ["--agent.ends", str(folder / "end"), "--logdir", "my run"]
    assert cli.main(["train", *NAMES, *options, *mine]) == code
    own_parts()
    told = capsys.readouterr()
    text = " ".join((told.out + told.err).split())
    [hint] = [part for part in text.split("`") if part.startswith("curious train")]
    words = shlex.split(hint)
    assert words[1:] == ["train", "--logdir", "my run", "--resume", *mine]
    assert cli.main(words[1:]) == 0
    shutil.copytree("my run", "other")
    assert cli.main(["fork", "my run", "--logdir", "other"]) == 2
    said = f"`{hint.replace(shlex.quote('my run'), 'other')}` goes on with it"
    assert said in " ".join(capsys.readouterr().err.split())


def test_lists_have_what_was_imported(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    mine = ["--import", str(folder / "mine.py")]
    assert cli.main([*mine, "experiments", "--scale", "debug"]) == 0
    assert "own-grid" in capsys.readouterr().out
    assert cli.main(["envs", *mine]) == 0
    assert "mine:Line" in capsys.readouterr().out


def test_worlds_of_a_switch_may_have_names_of_ones_own(folder, own_parts):
    worlds = ["--env", "switch", "--env.phases", "a=line", "b=line", "--env.schedule", "0", "a",
              "20", "b"]  # fmt: skip
    trained(folder, own_parts, *worlds)
    assert cr.load_run("run").changes == ((0, "a"), (20, "b"))


@pytest.mark.slow
def test_a_sweep_imports_it_in_its_processes(folder, own_parts, stop_forkserver, capsys):
    stop_forkserver()
    mine = ["--import", str(folder / "mine.py")]
    sweep = ["sweep", "own-grid", "--scale", "debug", "--runs", "runs", "--out", "page"]
    assert cli.main([*sweep, *mine]) == 0, capsys.readouterr()
    results = json.loads(Path("page/results.json").read_text())
    assert [row["values"] for row in results["measures"][0]["rows"]] == [[120], [120]]
    own_parts()
    (folder / "mine.py").write_text(f"{PARTS}\n# better\n")
    for folder_of_run in Path("runs/debug").iterdir():
        if folder_of_run.is_dir():  # as if it had been stopped
            for checkpoint in (folder_of_run / "checkpoints").glob("*-step-120"):
                checkpoint.rename(checkpoint.with_name("gone"))
    assert cli.main([*sweep, *mine]) == 2
    assert "--import-changed" in capsys.readouterr().err
    own_parts()
    stop_forkserver()
    assert cli.main([*sweep, "--import-changed", mine[1]]) == 0


@pytest.fixture
def installed(tmp_path, own_parts, monkeypatch):
    """A package with two plugins, installed: a module, and a function."""
    site = tmp_path / "site"
    package, about = site / "their_parts", site / "their_parts-1.5.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").write_text("from their_parts import rule\n")
    (package / "rule.py").write_text(
        textwrap.dedent("""
            from dataclasses import dataclass
            import curious_replay as cr

            @dataclass(frozen=True, kw_only=True)
            class Twice(cr.Count):
                gain: float = 2.0

            def register():
                cr.register_rule("by-function", Twice)
        """)
    )
    (package / "parts.py").write_text(
        "import curious_replay as cr\nfrom their_parts.rule import Twice\n"
        'cr.register_rule("by-module", Twice)\n'
    )
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: their-parts\nVersion: 1.5\n")
    (about / "entry_points.txt").write_text(
        "[curious_replay.plugins]\nmodule = their_parts.parts\n"
        "function = their_parts.rule:register\n"
    )
    monkeypatch.syspath_prepend(site)
    monkeypatch.chdir(tmp_path)
    return site


@pytest.mark.parametrize("name", ["module", "function"])
def test_an_installed_package_is_named(name, installed, tmp_path, own_parts, capsys):
    sys.path.insert(0, str(installed))  # own_parts forgets it
    options = ["--env", "toy/count", "--replay", f"by-{name}", "--scale", "debug", "--logdir",
               "run", "--train.steps", "20", "--train.prefill", "20"]  # fmt: skip
    assert cli.main(["train", *options]) == 2
    assert f"got 'by-{name}'" in capsys.readouterr().err  # being installed is not being asked for
    assert cli.main(["train", *options, "--import", name]) == 0
    [remembered] = plugins.remembered(tmp_path / "run")
    assert (remembered.name, remembered.where) == (name, "their-parts 1.5")
    resume = ["train", "--logdir", "run", "--resume", "--train.steps", "30"]
    own_parts()
    sys.path.insert(0, str(installed))
    assert cli.main(resume) == 2
    assert capsys.readouterr().err.endswith(f"add --import {name}\n")
    (installed / "their_parts" / "added.py").write_text("")  # any file counts
    assert cli.main([*resume, "--import", name]) == 2
    assert capsys.readouterr().err.endswith(f"--import-changed {name}\n")
    (installed / "their_parts" / "added.py").unlink()
    own_parts()
    sys.path.insert(0, str(installed))
    assert cli.main([*resume, "--import", name]) == 0


def test_what_cannot_be_imported_is_explained(installed, tmp_path, capsys):
    for name in ("json", "my-file", "twice"):
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "twice.py").write_text("")
    for arguments, said in (
        (["--import", "none.py"], "--import: there is no file none.py"),
        (["--import", "json.py"], "there is another module json ("),
        (["--import", "my-file.py"], "'my-file' is no name for a module: rename it"),
        (["--import", "twice.py", "--import", "other/twice.py"], "another module twice"),
        (["--import", "modul"], "no installed package has a plugin of this name (installed: fun"),
        (["--import"], "--import must be followed by a Python file, or a plugin's name"),
        (["--import-changed", "--scale"], "--import-changed must be followed by a Python file"),
    ):
        assert cli.main(["envs", *arguments]) == 2
        assert said in " ".join(capsys.readouterr().err.split())
    assert cli.main(["--import", "twice.py"]) == 2
    assert "unknown command ''" in capsys.readouterr().err


def test_an_error_in_the_file_keeps_its_traceback(tmp_path, own_parts):
    (tmp_path / "broken.py").write_text("1 / 0\n")
    with pytest.raises(ZeroDivisionError):
        cli.main(["envs", "--import", str(tmp_path / "broken.py")])


@pytest.mark.parametrize(
    "told", [{}, [1], [{"name": "a.py"}], [{"name": "a.py", "where": "\x1b[2J", "sha256": ""}]]
)
def test_what_a_strange_run_remembers_is_refused(told, tmp_path):
    write_json(tmp_path / "meta.json", {"plugins": told, "resumes": []})
    with pytest.raises(UnreadableError, match="plugins"):
        plugins.remembered(tmp_path)


def test_help_names_the_option(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert cli.main(["--help"]) == 0
    assert "--import-changed" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        cli.main(["eval", "--help"])
    assert "--import-changed" in capsys.readouterr().out
