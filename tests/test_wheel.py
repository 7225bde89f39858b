"""The wheel has all of the package, and works where the checkout is not.

It is installed for real, into an environment of its own. Only its dependencies are lent by the
environment of the tests: to install them again would take minutes.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "curious_replay"
SOURCES = ("pyproject.toml", "README.md", "LICENSE")


def run(command, **kwargs):
    """Run a command to its end; returns what it printed."""
    # What is given here reaches neither the checkout nor the environment of the tests.
    clean = {name: os.environ[name] for name in os.environ if name != "PYTHONPATH"}
    environ = {**clean, "COLUMNS": "120"}
    done = subprocess.run(
        [*map(str, command)], capture_output=True, text=True, check=False, env=environ, **kwargs
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy_of_the_checkout(tmp_path_factory):
    """A build leaves files behind."""
    copy = tmp_path_factory.mktemp("copy")
    for name in SOURCES:
        shutil.copy(ROOT / name, copy)
    shutil.copytree(PACKAGE, copy / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built as `make wheel` does."""
    copy, out = copy_of_the_checkout(tmp_path_factory), tmp_path_factory.mktemp("wheel")
    options = ["--no-deps", "--no-build-isolation", "--quiet", "--wheel-dir", out]
    run([sys.executable, "-m", "pip", "wheel", *options, copy])
    [made] = out.glob("*.whl")
    return made


def home_with(tmp_path_factory, *installed):
    """An environment that has this, and the libraries of the environment of the tests."""
    folder = tmp_path_factory.mktemp("home")
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    python = folder / "venv/bin/python"
    [site] = (folder / "venv/lib").glob("python*/site-packages")
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
    run([*pip, "--no-deps", "--no-index", "--force-reinstall", *installed])
    return folder, site


@pytest.fixture(scope="module")
def home(wheel, tmp_path_factory):
    return home_with(tmp_path_factory, wheel)[0]


def curious(home, *arguments):
    """What the installed command prints, far from the checkout."""
    return run([home / "venv/bin/curious", *arguments], cwd=home)


def test_it_has_every_file_of_the_package_and_no_other(wheel):
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
    files = {
        str(path.relative_to(ROOT))
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == files
    assert {"curious_replay/py.typed", "curious_replay/report/template.html"} <= names
    assert "curious_replay/report/page.js" in names


def test_the_library_is_imported_from_the_wheel(home):
    code = (
        "import sys, curious_replay.replay as replay; print(replay.__file__);"
        "assert not {'torch', 'mujoco', 'gymnasium'} & set(sys.modules)"
    )
    where = run([home / "venv/bin/python", "-c", code], cwd=home)
    assert str(home / "venv") in where


def test_its_commands(home):
    helped = curious(home, "--help")
    assert "train an agent, or go on with a run" in helped
    assert "object-interaction-removal" in curious(home, "envs")
    assert "crafter-hyperparameters" in curious(home, "experiments", "--no-hours")


def test_type_checkers_find_an_editable_install(tmp_path_factory):
    copy = copy_of_the_checkout(tmp_path_factory)
    home, site = home_with(tmp_path_factory, "--no-build-isolation", "--editable", copy)
    (site / "lent.pth").unlink()  # nothing but the install itself is to be found
    program = home / "program.py"
    program.write_text(
        "from curious_replay import Curious\nfrom curious_replay.replay import ReplayBuffer\n"
        "reveal_type(ReplayBuffer(capacity=8, length=2, rule=Curious()))\n"
    )
    options = ["--python-executable", home / "venv/bin/python", "--cache-dir", home / "cache"]
    checker = [sys.executable, "-m", "mypy", "--config-file", os.devnull]
    said = run([*checker, "--follow-imports", "silent", *options, program], cwd=home)
    assert 'Revealed type is "curious_replay.replay.buffer.ReplayBuffer"' in said


@pytest.mark.slow
def test_the_demo_makes_its_page(home):
    curious(home, "demo", "--quick", "--seeds", "1", "--no-open")
    assert "<script" in (home / "out/demo.html").read_text()
