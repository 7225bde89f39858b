"""What is missing is said in one line with the command that installs it."""

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from curious_replay import extras
from curious_replay.envs import find, make, names
from curious_replay.errors import UsageError

ROOT = Path(__file__).parents[1]
MISSING = """
import sys
for name in {names!r}:
    sys.modules[name] = None  # as if it were not installed
"""


def without(modules, code, cwd=ROOT):
    """Run a program where these modules cannot be imported."""
    program = f"{MISSING.format(names=modules)}\nsys.path.insert(0, {str(ROOT)!r})\n{code}"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)


def curious(*arguments):
    return f"from curious_replay import cli; sys.exit(cli.main({list(arguments)!r}))"


ALL = sorted({module for modules in extras.BRINGS.values() for module in modules})


def test_the_extras_are_those_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    modules = {"pillow": "PIL"}
    for extra, brought in extras.BRINGS.items():
        packages = [
            "".join(c if c.isalnum() or c in "-_" else " " for c in line).split()[0]
            for line in project["optional-dependencies"][extra]
            if not line.startswith(extras.NAME)
        ]
        assert {modules.get(p, p.replace("-", "_")) for p in packages} == {*brought}
    [everything] = project["optional-dependencies"]["all"]
    assert everything == f"{extras.NAME}[{','.join(extras.BRINGS)}]"
    assert {line.split(">")[0] for line in project["dependencies"]} == {"numpy", "numba"}


def test_replay_and_the_help_of_the_commands_need_no_extra():
    code = "import curious_replay as cr; cr.ReplayBuffer(8, 2, rule=cr.Curious())\n"
    done = without(ALL, code + curious("--help"))
    assert done.returncode == 0, done.stderr
    assert "train an agent, or go on with a run" in done.stdout


@pytest.mark.parametrize("command", [["train"], ["envs"], ["doctor", "--pictures", "1"]])
def test_a_command_without_the_extra_run_says_so(command):
    done = without(ALL, curious(*command))
    assert done.returncode == 2
    assert done.stderr == (
        f"curious: curious {command[0]} needs rich, which is not installed: "
        'pip install -e ".[run]"\n'
    )


@pytest.mark.parametrize(
    ("name", "missing", "extra"),
    [
        ("train", "torch", "run"),
        ("Agent", "torch", "run"),
        ("load_run", "scipy", "run"),
        ("make", "gymnasium", "worlds"),
    ],
)
def test_a_name_of_the_library_that_needs_an_extra_says_so(name, missing, extra):
    done = without(ALL, f"import curious_replay as cr; cr.{name}")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("curious_replay.extras.MissingError: curious_replay.")
    assert f'needs {missing}, which is not installed: pip install -e ".[{extra}]"' in last


def test_packages_that_are_imported_themselves_say_so_too():
    for line, missing in (
        ("from curious_replay.envs import make", "gymnasium"),
        ("from curious_replay.run import train", "torch"),
        ("from curious_replay.analysis import stats", "scipy"),
        ("from curious_replay.agents.blocks import optim", "torch"),
    ):
        last = without(ALL, line).stderr.splitlines()[-1]
        assert f'needs {missing}, which is not installed: pip install -e ".[' in last


def test_it_is_an_import_error_and_a_mistake_of_the_user(monkeypatch):
    monkeypatch.setitem(sys.modules, "crafter", None)
    for kind in (ImportError, UsageError):
        with pytest.raises(kind, match=r"crafter needs crafter, .*\[worlds\]"):
            make("crafter")


@pytest.mark.parametrize("name", [n for n in names() if not n.startswith("toy/")])
def test_every_world_names_what_it_lacks(name, monkeypatch):
    for module in ("mujoco", "dm_control", "crafter", "minigrid"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError, match=rf"^{name} needs {find(name).needs[0]}"):
        make(name)


# What these packages install themselves.
WITH_OTHERS = ("gymnasium", "PIL", "matplotlib", "packaging", "scipy")


def test_what_a_world_needs_is_what_it_imports():
    """A world is made where only what it says is there, and nothing else of the extras."""
    others = [m for m in ALL if m not in WITH_OTHERS]
    for name in ("toy/count", "object-interaction", "control/walker_walk", "crafter"):
        missing = [m for m in others if m not in find(name).needs]
        made = f"from curious_replay.envs import make; make({name!r}).reset(seed=0)"
        done = without(missing, made)
        assert done.returncode == 0, done.stderr


def test_the_control_suites_say_why_a_newer_python_cannot_have_them(monkeypatch):
    monkeypatch.setitem(sys.modules, "dm_control", None)
    monkeypatch.setattr(extras, "sys", SimpleNamespace(version_info=(3, 13, 0)))
    with pytest.raises(UsageError) as caught:
        make("control/walker_walk")
    assert str(caught.value).startswith(
        "control/walker_walk needs dm_control: it needs labmaze, which has no wheel for Python 3.13"
    )
    assert "use Python 3.11 or 3.12" in str(caught.value)
    make("object-interaction").close()
    monkeypatch.setattr(extras, "sys", SimpleNamespace(version_info=(3, 12, 0)))
    with pytest.raises(UsageError, match=r"dm_control, which is not installed: pip install"):
        make("constrained/cheetah_run")


def test_a_module_of_nobody_keeps_its_error():
    done = without([], "from curious_replay.extras import explained\nwith explained('it'):\n"
                       "    import no_such_module")  # fmt: skip
    assert done.stderr.splitlines()[-1] == ("ModuleNotFoundError: No module named 'no_such_module'")


class Distribution:
    def __init__(self, origin):
        self.origin = origin

    def read_text(self, name):
        assert name == "direct_url.json"
        return self.origin and json.dumps(self.origin)


def test_the_command_fits_how_the_package_was_installed(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    assert extras.install_command("wandb") == 'pip install -e ".[wandb]"'
    monkeypatch.chdir(tmp_path)
    assert extras.install_command("wandb") == f'pip install -e "{ROOT}[wandb]"'
    monkeypatch.setattr(extras, "CHECKOUT", tmp_path / "site-packages")
    source = tmp_path / "my checkout"
    source.mkdir()
    for origin, command in (
        ({"url": source.as_uri(), "dir_info": {}}, f'pip install "{source}[wandb]"'),
        ({"url": tmp_path.as_uri(), "dir_info": {}}, 'pip install ".[wandb]"'),
        ({"url": (tmp_path / "gone").as_uri(), "dir_info": {}}, None),
        ({"url": "https://example.org/x.whl", "archive_info": {}}, None),
        (None, None),
    ):
        monkeypatch.setattr(extras.metadata, "distribution", lambda name, o=origin: Distribution(o))
        assert extras.install_command("wandb") == (command or 'pip install "curious-replay[wandb]"')

    def unknown(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(extras.metadata, "distribution", unknown)
    assert extras.install_command("ray") == 'pip install "curious-replay[ray]"'
