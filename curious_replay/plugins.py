"""Code of the user's own that a command imports, and what a run remembers of it.

`--import my_file.py` imports a file, `--import name` what an installed package offers under that
name (an entry point of the group `curious_replay.plugins`). Either registers rules, agents,
environments or experiments. A run remembers both by name and checksum but never imports them: who
goes on with it says so again, by the same option.
"""

import hashlib
import importlib
import importlib.util
import shlex
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from curious_replay.errors import UsageError
from curious_replay.run_folder import META

GROUP = "curious_replay.plugins"
IMPORT, CHANGED = "--import", "--import-changed"
FORMS = {
    IMPORT: "FILE.py or NAME of an installed plugin: code of your own to import first, which "
    "registers rules, agents, environments or experiments.",
    CHANGED: "the same, where it has changed since the run that is to go on was begun.",
}
"""The options, which every command takes, and what they say."""


class Wanted(NamedTuple):
    """What the user names, and whether it may differ from what a run remembers."""

    what: str
    changed: bool = False


@dataclass(frozen=True)
class Plugin:
    """What a run remembers."""

    name: str
    """That of the file, or of the entry point."""
    where: str
    """Absolute path of the file, or package and version."""
    sha256: str
    """Of the file, or of all Python files of the package."""

    @property
    def what(self) -> str:
        """What a user names, in whatever folder."""
        return self.where if self.name.endswith(".py") else self.name


_loaded: dict[str, tuple[Plugin, Wanted]] = {}


def loaded() -> list[Plugin]:
    """Return what was imported in this process."""
    return [plugin for plugin, _ in _loaded.values()]


def wanted() -> tuple[Wanted, ...]:
    """Return what another process, in whatever folder, would have to load to be as this one."""
    return tuple(Wanted(plugin.what, asked.changed) for plugin, asked in _loaded.values())


def taken_from(arguments: Sequence[str]) -> tuple[list[Wanted], list[str]]:
    """Return what a command line wants imported, and the rest of it."""
    found, rest, words = [], [], iter(arguments)
    for word in words:
        option, equals, value = word.partition("=")
        if option not in FORMS:
            rest.append(word)
            continue
        what = value if equals else next(words, "")
        if not what or what.startswith("-"):
            raise UsageError(f"{option} must be followed by a Python file, or a plugin's name")
        found.append(Wanted(what, option == CHANGED))
    return found, rest


def load(asked: Iterable[Wanted]) -> None:
    """Import what is asked for, in order, each once."""
    for each in asked:
        plugin = _of_file(each) if each.what.endswith(".py") else _of_package(each)
        before = _loaded.get(plugin.name)
        if before is not None and before[0] != plugin:
            raise UsageError(f"{IMPORT} {plugin.name}: another of this name is imported already")
        _loaded[plugin.name] = plugin, each


def remembered(folder: Path) -> list[Plugin]:
    """Return what a run was last made with; nothing of it is imported."""
    from curious_replay.untrusted import UnreadableError, check, read_object  # noqa: PLC0415

    path = folder / META
    if not path.exists():
        return []
    meta = read_object(path)
    resumes = meta.get("resumes")
    last: Any = resumes[-1] if isinstance(resumes, list) and resumes else {}
    told = last.get("plugins") if isinstance(last, dict) else None
    told = meta.get("plugins", []) if told is None else told
    check(told, [dict.fromkeys(Plugin.__dataclass_fields__, str)], f"{path}, plugins")
    for each in told:
        if not "".join(each.values()).isprintable():
            raise UnreadableError(f"{path}, plugins must be text that can be shown, got {each!r}")
    return [Plugin(**each) for each in told]


def confirm(folder: Path) -> None:
    """Refuse to go on with a run unless all its plugins are given again, and are as they were."""
    there = remembered(folder)
    for plugin in there:
        if plugin.name not in _loaded:
            raise UsageError(
                f"{folder} was made with code of its user's own, {plugin.name} ({plugin.where}), "
                f"which is run only if you say so: add {_options(there)}"
            )
        here, asked = _loaded[plugin.name]
        if here.sha256 != plugin.sha256 and not asked.changed:
            raise UsageError(
                f"{plugin.name} is not as it was when {folder} was made with it (sha256 "
                f"{here.sha256[:12]}, then {plugin.sha256[:12]}): put it back, or go on with what "
                f"it is now: {shlex.join([CHANGED, here.what])}"
            )


def hint(folder: Path) -> str:
    """Return what to add to an error about a run whose names are unknown; "" without plugins."""
    there = [plugin for plugin in remembered(folder) if plugin.name not in _loaded]
    return f" (the run was made with {_options(there)})" if there else ""


def resuming(folder: Path) -> str:
    """Return the command that goes on with a run."""
    words = shlex.join(["curious", "train", "--logdir", str(folder), "--resume"])
    return " ".join(filter(None, [words, _options(remembered(folder))]))


def describe() -> list[dict[str, str]]:
    """Return what was imported, ready for JSON."""
    return [asdict(plugin) for plugin in loaded()]


def given_options() -> list[str]:
    """Return the options as they were given, word by word."""
    return [
        word
        for _, asked in _loaded.values()
        for word in (CHANGED if asked.changed else IMPORT, asked.what)
    ]


def _options(plugins: Iterable[Plugin]) -> str:
    return " ".join(shlex.join([IMPORT, plugin.what]) for plugin in plugins)


def _of_file(asked: Wanted) -> Plugin:
    """Import a file under its own name: processes of environments import it by that, too."""
    path = Path(asked.what).resolve()
    if not path.is_file():
        raise UsageError(f"{IMPORT}: there is no file {asked.what}")
    if not path.stem.isidentifier():
        raise UsageError(f"{IMPORT} {asked.what}: {path.stem!r} is no name for a module: rename it")
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.append(folder)  # at the end: nothing in there replaces an installed package
    spec = None if path.stem == "__main__" else importlib.util.find_spec(path.stem)
    origin = "" if spec is None else spec.origin or ""
    if not origin or Path(origin).resolve() != path:
        raise UsageError(
            f"{IMPORT} {asked.what}: there is another module {path.stem} "
            f"({origin or 'built in'}): rename the file"
        )
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    importlib.import_module(path.stem)
    return Plugin(path.name, str(path), checksum)


def _of_package(asked: Wanted) -> Plugin:
    """Import what an installed package offers: a module, or a function to be called."""
    points = metadata.entry_points(group=GROUP)
    found = [point for point in points if point.name == asked.what]
    if len(found) != 1 or found[0].dist is None:
        names = ", ".join(sorted(points.names)) or "none"
        many = f"{len(found)} installed packages have" if found else "no installed package has"
        raise UsageError(
            f"{IMPORT} {asked.what}: {many} a plugin of this name (installed: {names}); a file's "
            "name ends in .py"
        )
    [point] = found
    checksum = _checksum(point.module.partition(".")[0])
    made = point.load()
    if callable(made):
        made()
    return Plugin(point.name, f"{found[0].dist.name} {found[0].dist.version}", checksum)


def _checksum(package: str) -> str:
    """Return that of all Python files of a package, with their names."""
    spec = importlib.util.find_spec(package)
    folders = [Path(each) for each in (spec and spec.submodule_search_locations) or ()]
    files = [(path.relative_to(each), path) for each in folders for path in each.rglob("*.py")]
    if spec is not None and not folders and spec.origin:
        files = [(Path(package), Path(spec.origin))]
    digest = hashlib.sha256()
    for name, path in sorted(files):
        digest.update(f"{name} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
