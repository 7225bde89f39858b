"""Mistakes of an environment's author are told at the start, with the method and the line."""

import json
import sys
from pathlib import Path

import mistaken_envs
import pytest

from curious_replay.run.settings.env_config import UserEnvConfig
from curious_replay.run.worlds.environments import UnfitEnvironmentError, inspect_env


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("init", "its constructor raised AttributeError: 'dict' object has no attribute 'foo'"),
        ("reset", "reset() raised ValueError: operands could not be broadcast together with"),
        ("key", "reset() raised KeyError: 'pos' ("),
        ("library", "reset() raised ValueError: need at least one array"),
        ("step", "step() raised AssertionError ("),
        (
            "old",
            "reset() returned one value, of the type ndarray; right would be observation,",
        ),
        ("three", "reset() returned 3 values; right would be observation, info"),
        ("none", "reset() returned the info None; right would be a dictionary"),
        ("info", "step() returned the info None; right would be a dictionary"),
    ],
)
def test_mistakes_are_told_with_name_method_and_place(how, message):
    with pytest.raises(UnfitEnvironmentError) as told:
        inspect_env(
            "mistaken_envs:Mistaken", UserEnvConfig(arguments_json=json.dumps({"how": how}))
        )
    assert str(told.value).startswith(f"mistaken_envs:Mistaken cannot be used: {message}")
    path = Path(mistaken_envs.__file__)
    places = [n for n, t in enumerate(path.read_text().splitlines(), 1) if f"# line of {how}" in t]
    for line in places:
        assert str(told.value).endswith(f" ({path}:{line})")


def test_a_module_that_fails_is_told_with_its_place(tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("import gymnasium\nimport nowhere_at_all\n")
    (tmp_path / "misspelt.py").write_text("class Env\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(UnfitEnvironmentError, match=r"No module named.*\(.*halfway.py:2\)$"):
        inspect_env("halfway:Env", UserEnvConfig())
    with pytest.raises(UnfitEnvironmentError, match=r"SyntaxError: .*\(misspelt.py, line 1\)"):
        inspect_env("misspelt:Env", UserEnvConfig())


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("NoSpace", "NoSpace cannot be used: it has no action_space"),
        ("OldReset", r"OldReset cannot be used: reset.. raised TypeError.*'seed'$"),
    ],
)
def test_what_is_missing_is_said_without_a_place(kind, message):
    with pytest.raises(UnfitEnvironmentError, match=message):
        inspect_env(f"mistaken_envs:{kind}", UserEnvConfig())


def test_arguments_that_a_constructor_does_not_take_are_named():
    for name in ("mistaken_envs:OldReset", "CartPole-v1"):
        with pytest.raises(UnfitEnvironmentError, match=r"constructor raised TypeError.*'wind'"):
            inspect_env(name, UserEnvConfig(arguments_json='{"wind": 1}'))
