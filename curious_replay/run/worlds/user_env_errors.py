"""Errors in a user's environment, told with the method that raised them and their place."""

import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import gymnasium

from curious_replay.run.worlds.spaces import UnfitEnvironmentError

_INSTALLED = {"site-packages", "dist-packages"}


@contextmanager
def calling(what: str) -> Iterator[None]:
    """Refuse the environment if the code of its author raises; `what` of it is called here."""
    try:
        yield
    except UnfitEnvironmentError:
        raise
    except Exception as error:
        raise UnfitEnvironmentError(f"{what} raised {described(error)}") from error


def described(error: Exception) -> str:
    """Return kind and text of an error, and the last line of the user's code that led to it."""
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    place = _place(error)
    return f"{text} ({place})" if place else text


def _place(error: Exception) -> str:
    """Return file and line of the error in the user's code.

    It is "" if none of that code was reached, as with wrong arguments.
    """
    # Only a call passes through these, never the mistake: ours, Gymnasium's wrappers, imports.
    between = [
        Path(__file__).parents[1],
        Path(gymnasium.__file__).parent,
        Path(sysconfig.get_path("stdlib")),
    ]
    frames = [
        (Path(frame.filename), frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<")
    ]
    installed = [(path, line) for path, line in frames if _INSTALLED & {*path.parts}]
    written = [frame for frame in frames if frame not in installed]
    for path, line in (*reversed(written), *reversed(installed)):
        # What is installed may lie below the standard library: it is not part of it.
        inside = between[:2] if _INSTALLED & {*path.parts} else between
        if not any(path.is_relative_to(folder) for folder in inside):
            return f"{path}:{line}"
    return ""
