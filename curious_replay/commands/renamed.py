"""Options under their names of before, for one release."""

import sys
from collections.abc import Mapping, Sequence


def renamed(arguments: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Return the arguments with options `{before: now}` under their new names, and say so."""
    given = []
    for argument in arguments:
        option, equals, value = argument.partition("=")
        if option in names:
            print(f"curious: {option} is now {names[option]}", file=sys.stderr)
            option = names[option]
        given.append(f"{option}{equals}{value}")
    return given
