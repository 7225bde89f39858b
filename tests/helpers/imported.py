"""What the files of the package import, by reading them: nothing is run."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "curious_replay"
BY_NAME = {"import_module", "find_spec"}  # functions that are given the name of a module


def imports(path):
    """Yield ("curious_replay", "replay", "priority") and the like for every import of a file."""
    inside = path.relative_to(PACKAGE.parent).parts[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield tuple(alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = inside[: len(inside) - node.level + 1] if node.level else ()
            module = base + tuple((node.module or "").split(".") if node.module else ())
            # `from curious_replay import cli` names a module behind the word import.
            if module == ("curious_replay",):
                yield from ((*module, alias.name) for alias in node.names if _is_module(alias.name))
            else:
                yield module
        elif isinstance(node, ast.Call) and _name(node.func) in BY_NAME:
            for given in node.args[:1]:
                if isinstance(given, ast.Constant):
                    yield tuple(str(given.value).split("."))


def _is_module(name):
    return (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists()


def _name(function):
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
