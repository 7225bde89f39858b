"""The core on every Python that is declared: installed alone, it passes all tests of replay."""

import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SPEC = importlib.util.spec_from_file_location("installs", ROOT / "bench" / "installs.py")
installs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(installs)

DECLARED = re.findall(r"Python :: (\d\.\d+)", "\n".join(PROJECT["classifiers"]))
FOR_TESTS = ("hypothesis>=6.100", "pytest>=9", "pytest-timeout>=2.4", "scipy>=1.14")
# It runs all the others once more.
AGAIN = "tests/replay/test_other_systems.py::test_all_else_of_these_tests_passes_there"


def test_the_benchmark_has_the_declared_versions():
    assert list(installs.PYTHONS) == DECLARED
    assert PROJECT["requires-python"] == f">={DECLARED[0]}"


def test_a_version_that_is_not_there_is_skipped_with_a_reason(tmp_path, capsys):
    assert installs.find_python("3.1") is None
    installs.main(["--pythons", "3.1", "--extras", "run", "--out", str(tmp_path)])
    assert capsys.readouterr().out == "Python 3.1 [run]: no such interpreter was found\n"
    assert "skipped" in (tmp_path / "installs.json").read_text()


def run(programs, *command, cwd):
    done = subprocess.run(
        [programs / command[0], *command[1:]], capture_output=True, text=True, check=False, cwd=cwd,
        env=installs.clean_environ(programs),
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    return done.stdout


@pytest.fixture(scope="module", params=DECLARED)
def programs(request, tmp_path_factory):
    """The programs of an environment with the core alone."""
    python = installs.find_python(request.param)
    if python is None:
        pytest.skip(f"no Python {request.param} was found, neither of pyenv nor on the path")
    folder = tmp_path_factory.mktemp(f"python{request.param}")
    made = installs.fresh_environment(python, folder)
    try:
        installs.install(made, *PROJECT["dependencies"])
    except subprocess.CalledProcessError:
        pytest.skip("pip found no package index to install NumPy and Numba from")
    installs.install(made, ROOT)
    return made


@pytest.mark.slow
def test_the_core_is_numpy_and_numba_and_passes_all_tests_of_replay(programs, tmp_path):
    run(programs, "python", "-W", "error", "-c", installs.example(), cwd=tmp_path)
    run(programs, "python", "-m", "pip", "check", cwd=tmp_path)
    assert "go on with a run" in run(programs, "curious", "--help", cwd=tmp_path)
    listed = run(programs, "python", "-m", "pip", "list", "--format=freeze", cwd=tmp_path)
    found = {line.partition("==")[0].lower() for line in listed.splitlines()}
    assert {"numpy", "numba", "llvmlite", "curious-replay"} <= found
    assert not {"torch", "gymnasium", "mujoco", "rich", "scipy", "pillow"} & found
    # The tests are of the installed package, as the checkout is not on the path.
    where = "import curious_replay; print(curious_replay.__file__)"
    assert str(programs.parent) in run(programs, "python", "-c", where, cwd=tmp_path)
    installs.install(programs, *FOR_TESTS)
    options = ["-p", "no:cacheprovider", "--deselect", AGAIN, f"--rootdir={ROOT}"]
    tests = [f"-c{ROOT}/pyproject.toml", ROOT / "tests/replay"]
    run(programs, "pytest", *options, *tests, cwd=tmp_path)
