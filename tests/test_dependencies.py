"""docs/dependencies.md names what pyproject.toml asks for, and the code imports just that."""

import re
import sys
import tomllib
from pathlib import Path

from helpers.imported import PACKAGE, imports

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PAGE = (ROOT / "docs/dependencies.md").read_text()
_, CORE, RUN, WORLDS, EXTRAS, _ = re.split(r"^## .*$", PAGE, flags=re.MULTILINE)
IMPORTED_AS = {"pillow": "PIL"}  # else as the package is called, with _ for -
COMES_WITH = {"llvmlite": "numba", "triton": "torch", "tensordict": "torchrl"}


def names(requirements):
    """Names of packages; of ourselves, which some extras ask for with another extra, not."""
    found = {re.split(r"[^\w-]", requirement)[0] for requirement in requirements}
    return found - {PROJECT["name"]}


def module(package):
    return IMPORTED_AS.get(package, package.replace("-", "_"))


def rows(text):
    """Cells of the rows of tables whose first cell is a name in backquotes."""
    lines = re.findall(r"^\| (`[\w-]+` \|.*) \|$", text, re.MULTILINE)
    return [[cell.strip() for cell in line.split(" | ")] for line in lines]


def quoted(cell):
    return re.findall(r"`([^`]+)`", cell)


def imported():
    """The other packages that ours imports, and in which of its files."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        for name in imports(path):
            if name[0] and name[0] not in ("curious_replay", *sys.stdlib_module_names):
                found.setdefault(name[0], set()).add(str(path.relative_to(PACKAGE)))
    return found


def test_the_page_has_the_core_dependencies():
    extras = PROJECT["optional-dependencies"]
    for part, asked in (
        (CORE, PROJECT["dependencies"]),
        (RUN, extras["run"]),
        (WORLDS, extras["worlds"]),
    ):
        assert {quoted(row[0])[0] for row in rows(part)} == names(asked)


def test_the_page_has_the_extras():
    found = {}
    for extra, packages, *_ in rows(EXTRAS):
        found.setdefault(quoted(extra)[0], set()).update(quoted(packages))
    extras = PROJECT["optional-dependencies"]
    others = {extra: names(extras[extra]) for extra in extras if extra not in ("run", "worlds")}
    assert found == {extra: packages for extra, packages in others.items() if packages}


def test_extras_bring_the_extras_that_the_page_says():
    extras = PROJECT["optional-dependencies"]
    brought = {
        extra: set(re.findall(r"[\w]+", own[0].partition("[")[2]))
        for extra, packages in extras.items()
        if (own := [line for line in packages if line.startswith(PROJECT["name"])])
    }
    for extra in ("ray", "slurm", "wandb", "pandas"):
        assert brought.pop(extra) == {"run"}
    told = re.search(r"`pip install \"\.\[all\]\"` brings the extras (.*)\.", PAGE)[1]
    assert brought.pop("all") == set(quoted(told))
    told = re.search(r"`dev`, which `make` installs, brings (.*)\.", PAGE)[1]
    assert brought.pop("dev") == set(quoted(told))
    assert not brought


def test_every_dependency_is_imported_where_the_page_says():
    found = imported()
    for package, _, _, where in rows(CORE + RUN + WORLDS):
        files = found[module(quoted(package)[0])]
        assert set(quoted(where)) <= files, f"{package} is imported in {sorted(files)}"


def test_the_files_of_extras_are_there():
    for *_, where in rows(EXTRAS):
        for file in quoted(where):
            assert (PACKAGE / file).exists() or (ROOT / file).exists(), file


def test_everything_imported_is_declared():
    declared = names(PROJECT["dependencies"])
    for extra in ("run", "worlds", "ray", "slurm", "wandb", "minigrid", "torchrl", "pandas"):
        declared |= names(PROJECT["optional-dependencies"][extra])
    known = {module(package) for package in declared}
    undeclared = {name for name in imported() if COMES_WITH.get(name, name) not in known}
    assert not undeclared


def test_the_page_names_the_declared_pythons():
    declared = re.findall(r"Python :: (\d\.\d+)", "\n".join(PROJECT["classifiers"]))
    line = re.search(r"^Python: .*$", PAGE, re.MULTILINE)[0]
    assert re.findall(r"\d\.\d+", line) == declared
    heads = re.search(r"^\| To have .*$", PAGE, re.MULTILINE)[0]
    assert re.findall(r"\d\.\d+", heads) == declared
