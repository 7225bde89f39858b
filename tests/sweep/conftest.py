"""A small sweep that nothing disturbed, for others to be compared with."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from curious_replay import cli

GRID, TRUNK = (str(Path(__file__).with_name(f"small_{each}.py")) for each in ("grid", "trunk"))


def _sweep_command(folder, *options, grid=GRID):
    return [
        "sweep", grid, "--scale", "debug", "--seeds", "2", "--runs", str(folder / "runs"),
        "--out", str(folder / "out"), *options,
    ]  # fmt: skip


def _results(folder):
    """What came out, without how long it took."""
    found = json.loads((folder / "out" / "results.json").read_text())
    return {name: found[name] for name in ("word", "verdict", "measures")}


@pytest.fixture(scope="module", autouse=True)
def quick_processes(stop_forkserver):
    """A sweep's processes are born with PyTorch imported."""
    stop_forkserver()


@pytest.fixture(scope="session")
def sweep_command():
    return _sweep_command


@pytest.fixture(scope="session")
def results():
    return _results


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    assert cli.main(_sweep_command(folder, "--at-once", "2")) == 0
    return folder


@pytest.fixture(scope="session")
def undisturbed_trunk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed_trunk")
    assert cli.main(_sweep_command(folder, "--at-once", "2", grid=TRUNK)) == 0
    return folder


@pytest.fixture(params=["grid", "trunk"])
def either(request):
    """A grid, without trunks or with, its sweep that nothing disturbed, and `waiting.trunks`."""
    if request.param == "grid":
        return GRID, request.getfixturevalue("undisturbed"), {}
    return TRUNK, request.getfixturevalue("undisturbed_trunk"), {0: 1, 1: 1}


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=160)
