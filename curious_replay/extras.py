"""What each extra of this package brings, and how to install one that is missing.

`pip install curious-replay` brings NumPy and Numba, which is all that replay needs. Whoever needs
more says so here, and a user without it reads one line with the command that installs it.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlparse

from curious_replay.errors import UsageError

NAME = "curious-replay"
BRINGS = {
    "run": (
        "torch", "gymnasium", "safetensors", "tensorboard", "scipy", "matplotlib", "PIL",
        "imageio_ffmpeg", "packaging", "tyro", "rich",
    ),
    "worlds": ("mujoco", "dm_control", "crafter", "gymnasium", "PIL"),
    "minigrid": ("minigrid",),
    "ray": ("ray",),
    "slurm": ("submitit",),
    "wandb": ("wandb",),
    "torchrl": ("torchrl",),
    "pandas": ("pandas",),
}  # fmt: skip
"""Modules by extra; pyproject.toml has the packages that they are in."""
CHECKOUT = Path(__file__).parents[1]


class MissingError(UsageError, ImportError):
    """A package is not installed. The message is one line, with the command that installs it."""


def is_installed(module: str) -> bool:
    """Return whether a module can be imported, without doing so."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def require(what: str, *modules: str) -> None:
    """Refuse to go on without these modules; `what` is the thing that needs them."""
    for module in modules:
        if not is_installed(module):
            raise MissingError(_sentence(what, module, ""))


@contextmanager
def explained(what: str, extra: str = "") -> Iterator[None]:
    """Let a module that is missing in this block be a MissingError, if one of our extras has it.

    `extra` is the one to name, where that is known. Other modules are not ours to explain.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if not any(module in modules for modules in BRINGS.values()):
            raise
        raise MissingError(_sentence(what, module, extra)) from error


def obstacle(module: str) -> str:
    """Return why pip cannot install a module on this Python, and what to do; "" if it can."""
    if module == "dm_control" and sys.version_info >= (3, 13):
        return (
            "it needs labmaze, which has no wheel for Python 3.13 or newer; use Python 3.11 or "
            "3.12 for the control suites (the assay, Crafter and MiniGrid work here)"
        )
    return ""


def install_command(extra: str) -> str:
    """Return the command that installs an extra, as this package itself was installed."""
    folder, editable = _source()
    if folder is None:
        return f'pip install "{NAME}[{extra}]"'
    place = "." if folder == Path.cwd() else str(folder)
    return f'pip install {"-e " if editable else ""}"{place}[{extra}]"'


def _sentence(what: str, module: str, preferred: str) -> str:
    if reason := obstacle(module):
        return f"{what} needs {module}: {reason}"
    having = [extra for extra, modules in BRINGS.items() if module in modules]
    extra = preferred or having[0]
    return f"{what} needs {module}, which is not installed: {install_command(extra)}"


def _source() -> tuple[Path | None, bool]:
    """Return the checkout that this package is of, if there is one, and whether it is used as is.

    A package that was copied from a checkout knows it by what pip wrote down (PEP 610).
    """
    if (CHECKOUT / "pyproject.toml").exists():
        return CHECKOUT, True
    try:
        noted = metadata.distribution(NAME).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None, False
    origin = json.loads(noted or "{}")
    if "dir_info" not in origin:
        return None, False
    from urllib.request import url2pathname  # noqa: PLC0415  # it brings all of HTTP

    folder = Path(url2pathname(urlparse(origin["url"]).path))
    return (folder if folder.is_dir() else None), False
