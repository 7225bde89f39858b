"""Every command, option and import on a page is one that there is."""

import ast
import dataclasses
import importlib
import re
import shlex

import pytest
import tyro
from helpers.pages import ROOT, TEXTS, shown

from curious_replay import cli
from curious_replay.commands import fork
from curious_replay.run import Choice, preset
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.config import EvalConfig, RecordConfig, TrainConfig
from curious_replay.run.settings.env_config import FAMILIES
from curious_replay.run.settings.replay_config import REPLAYS

OF_EXAMPLES = {"--replay.cap", "--agent.lr"}  # settings that examples add


def commands():
    """Command lines that pages show, on lines of their own or within a sentence."""
    lines = [(page, each.command) for page in TEXTS for each in shown(page) if each.command]
    return sorted({(page, *shlex.split(line, comments=True)) for page, line in lines})


def options(settings, prefix):
    """Names on the command line of all settings of a dataclass, also of those within it."""
    for each in dataclasses.fields(settings):
        name = f"{prefix}{each.name.replace('_', '-')}"
        if dataclasses.is_dataclass(each.type):
            yield f"--{name}"
            yield from options(each.type, f"{name}.")
        else:
            yield f"--{name}"
            yield f"--{prefix}no-{each.name.replace('_', '-')}"


def all_options():
    groups = {
        "env": FAMILIES.values(),
        "agent": [entry.config for entry in AGENTS.values()],
        "replay": REPLAYS.values(),
        "train": [TrainConfig],
        "eval": [EvalConfig],
        "record": [RecordConfig],
    }
    known = {o for group, kinds in groups.items() for k in kinds for o in options(k, f"{group}.")}
    return known | OF_EXAMPLES


class UnderstoodError(Exception):
    """The command line was read without complaint; what would come next does not happen."""


@pytest.fixture
def only_read(monkeypatch, tmp_path, own_parts):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    made = preset(Choice(env="toy/mirror", replay="uniform"))
    monkeypatch.setattr(fork, "load_config", lambda folder: made)  # runs that a reader has by then
    real = tyro.cli

    def read(*args, **kwargs):
        real(*args, **kwargs)
        raise UnderstoodError

    monkeypatch.setattr(tyro, "cli", read)


@pytest.mark.parametrize("command", [c for c in commands() if c[1] == "curious"], ids=" ".join)
def test_the_command_line_is_understood(command, only_read, capsys):
    arguments = [given for word in command[2:] if (given := word.removesuffix("..."))]
    assert arguments[0] in cli.COMMANDS
    if arguments[1:] in ([], ["show"]):
        return  # only its name, as in a sentence about it
    with pytest.raises((UnderstoodError, SystemExit)) as ended:
        cli.main(arguments)
    assert getattr(ended.value, "code", 0) == 0, capsys.readouterr().err


@pytest.mark.parametrize("command", [c for c in commands() if c[1] == "make"], ids=" ".join)
def test_the_target_is_there(command):
    assert re.search(rf"^{command[2]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", TEXTS)
def test_every_setting_that_a_page_names_is_an_option(page):
    pattern = r"(--(?:env|agent|replay|train|eval|record)\.[a-z][\w.-]*\w)"
    unknown = set(re.findall(pattern, TEXTS[page])) - all_options()
    assert not unknown


@pytest.mark.parametrize("page", TEXTS)
def test_what_python_on_a_page_imports_is_there(page):
    for code in re.findall(r"^```python\n(.*?)^```", TEXTS[page], re.MULTILINE | re.DOTALL):
        if "curious_replay.torchrl" in code:
            continue  # needs TorchRL; tests/guests/test_torchrl_example.py runs it
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("curious_replay"):
                module = importlib.import_module(node.module)
                for alias in node.names:
                    if not hasattr(module, alias.name):
                        importlib.import_module(f"{node.module}.{alias.name}")
