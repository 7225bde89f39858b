"""The public face: what `import curious_replay` offers, its page, and parts of one's own."""

import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import curious_replay as cr

ROOT = Path(__file__).parents[1]
SPEC = importlib.util.spec_from_file_location("make_api", ROOT / "docs" / "make_api.py")
make_api = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_api)


def loaded_by(code):
    """Modules that a fresh interpreter has after `code`, beyond those it begins with."""
    program = f"import sys; had = {{*sys.modules}}\n{code}\nprint(*({{*sys.modules}} - had))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return {*done.stdout.splitlines()[-1].split()}


def test_the_import_alone_loads_next_to_nothing():
    loaded = loaded_by("import curious_replay")
    assert {name for name in loaded if name.startswith("curious_replay")} == {"curious_replay"}
    heavy = {"numpy", "numba", "torch", "gymnasium", "mujoco", "dm_control", "tyro", "rich"}
    assert not heavy & loaded
    assert len(loaded) < 60


def test_replay_is_used_without_torch_or_a_simulator():
    loaded = loaded_by("import curious_replay as cr; cr.ReplayBuffer, cr.Curious()")
    assert "numba" in loaded
    assert not {"torch", "gymnasium", "mujoco"} & loaded


def test_all_names_are_there_and_no_others():
    assert {*cr.__all__} <= {*dir(cr)}
    for name in cr.__all__:
        assert getattr(cr, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Curios'"):
        cr.Curios  # noqa: B018


def test_the_page_has_every_name_with_an_example_and_is_up_to_date():
    shown = [name for names in make_api.GROUPS.values() for name in names]
    assert sorted(shown) == sorted(cr.__all__)
    assert sorted(make_api.EXAMPLES) == sorted(cr.__all__)
    assert make_api.PAGE.read_text() == make_api.page(), "run python docs/make_api.py"


def test_the_examples_of_the_page_run(tmp_path, own_parts):
    space = {"cr": cr, "np": np, "replace": replace, "folder": tmp_path}
    for names in make_api.GROUPS.values():
        for name in names:
            exec(make_api.example(name), space)


PACKAGE = {
    "__init__.py": """
        import curious_replay as cr
        from own_parts.agent import Config, preset
        from own_parts.rule import Oldest

        cr.register_agent("still", Config, "own_parts.agent:Still", preset, predicts_images=False)
        cr.register_rule("oldest", Oldest)
        cr.register_env("line", "own_parts.env:Line")
    """,
    "agent.py": """
        from dataclasses import dataclass
        import numpy as np
        import curious_replay as cr
        from curious_replay.bounds import Share

        @dataclass(frozen=True)
        class Config:
            pull: Share = 0.5
            \"\"\"How far it leans.\"\"\"

        def preset(family, choice):
            return {"train": {"steps": 40, "prefill": 10, "batch_size": 2, "batch_length": 4,
                              "log_every": 20}, "env": {"processes": False}}

        class Still(cr.Agent):
            def __init__(self, config, spaces, seed, device):
                super().__init__(spaces, seed, device)
                self.config = config

            def start(self, num_envs):
                return {}

            def act(self, state, observation, generator, explore):
                return np.full((len(observation["is_first"]), self.spaces.actions),
                               self.config.pull, np.float32), state

            def update(self, batch, unread=()):
                loss = np.ones(batch["reward"].shape, np.float32)
                return cr.Feedback({"model": loss}, {"pull": self.config.pull})

            def open_loop(self, batch, context):
                raise NotImplementedError
    """,
    "rule.py": """
        from dataclasses import dataclass
        import curious_replay as cr

        @dataclass(frozen=True, kw_only=True)
        class Oldest(cr.Count):
            gain: float = 2.0
            \"\"\"What the term is multiplied by.\"\"\"

            def terms(self, visits, signals):
                return {"count": self.gain * super().terms(visits, signals)["count"]}
    """,
    "env.py": """
        import gymnasium
        import numpy as np

        class Line(gymnasium.Env):
            observation_space = gymnasium.spaces.Box(-9, 9, (1,), np.float32)
            action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)

            def __init__(self, length=5):
                self.length, self.at = length, 0

            def reset(self, *, seed=None, options=None):
                super().reset(seed=seed)
                self.at = 0
                return np.zeros(1, np.float32), {}

            def step(self, action):
                self.at += 1
                return np.full(1, self.at, np.float32), 0.0, False, self.at >= self.length, {}
    """,
}


@pytest.fixture
def package(tmp_path, monkeypatch, own_parts):
    """A package of a user's, which registers one of everything when it is imported."""
    folder = tmp_path / "own_parts"
    folder.mkdir()
    for name, text in PACKAGE.items():
        code = make_api.textwrap.dedent(text).replace("\\", "")
        (folder / name).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("own_parts")
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "own_parts"]:
        del sys.modules[name]


OPTIONS = ["--env", "line", "--agent", "still", "--replay", "oldest", "--agent.pull", "0.25",
           "--replay.gain", "3", "--env.arguments-json", '{"length": 7}', "--scale", "debug",
           "--record.no-tensorboard", "--eval.every", "0", "--train.threads", "1"]  # fmt: skip


def test_an_agent_a_rule_and_an_environment_of_a_package_outside(package, tmp_path):
    from curious_replay import cli  # noqa: PLC0415

    assert cli.main(["train", *OPTIONS, "--logdir", str(tmp_path / "run")]) == 0
    run = cr.load_run(tmp_path / "run")
    assert run.metrics["pull"][-1] == 0.25
    assert run.setting("replay.gain") == 3
    assert run.played()["length"].tolist()[0] == 7
    rule = cr.SavedBuffer(
        next((tmp_path / "run" / "checkpoints").glob("*-step-40")) / "replay"
    ).rule
    assert "gain=3.0" in json.dumps(rule)
    assert cr.make("line", length=3).length == 3


def test_options_of_registered_parts_are_checked_and_explained(package, tmp_path, capsys):
    from curious_replay import cli  # noqa: PLC0415

    assert cli.main(["train", *OPTIONS, "--agent.pull", "2"]) == 2
    assert "--agent.pull must be from 0 to 1, got 2" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["train", *OPTIONS, "--help"])
    help_text = " ".join(capsys.readouterr().out.replace("\u2502", " ").split())
    assert "How far it leans." in help_text
    assert "What the term is multiplied by." in help_text


def test_a_name_is_given_once(package):
    for register, kind in ((cr.register_agent, (int, int)), (cr.register_rule, (cr.Uniform,))):
        name = {cr.register_agent: "still", cr.register_rule: "oldest"}[register]
        with pytest.raises(cr.UsageError, match=f"{name}' already: choose another name"):
            register(name, *kind)
    with pytest.raises(cr.UsageError, match="an environment 'crafter' already"):
        cr.register_env("crafter", "own_parts.env:Line")
