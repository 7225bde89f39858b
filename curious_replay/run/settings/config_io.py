"""What all groups of settings share: bounds that name their option, and JSON that is checked.

Settings are frozen dataclasses. What is wrong with a value is said in terms of the command line
option that sets it, wherever the value came from.
"""

import types
from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from tyro.constructors import PrimitiveConstructorSpec

from curious_replay.bounds import Within
from curious_replay.errors import UsageError


def _whole_number(text: str) -> int:
    """Read 1000000, 1_000_000 or 1e6."""
    try:
        number = float(text) if set(text) & set(".eE") else int(text)
        if number == int(number):
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise ValueError(f"{text!r} is not a whole number such as 20000 or 1e6")


Whole = Annotated[
    int,
    PrimitiveConstructorSpec(
        nargs=1,
        metavar="INT",
        instance_from_str=lambda texts: _whole_number(texts[0]),
        is_instance=lambda value: isinstance(value, int),
        str_from_instance=lambda value: [str(value)],
    ),
]
"""A whole number, which may be written as 1e6 on the command line."""

Phases = tuple[tuple[int, str], ...] | None
"""A schedule: phases and the frames at which they begin; None: that of the environment's scale."""


def option(path: str) -> str:
    """Return a setting's name on the command line: "train.batch_size" is --train.batch-size."""
    return "--" + path.replace("_", "-")


def within(group: str, settings: Any) -> None:
    """Refuse numbers outside of the bounds of their fields, also in groups within this one.

    NaN is always outside; None is no number.
    """
    kind: Any = type(settings)
    for name, bounds in bounds_of(kind).items():
        value, most = getattr(settings, name), 1e18 if bounds.most is None else bounds.most
        if value is not None and not bounds.least <= value <= most:
            wanted = (
                f"at least {bounds.least:g}"
                if bounds.most is None
                else f"from {bounds.least:g} to {bounds.most:g}"
            )
            raise UsageError(f"{option(f'{group}.{name}')} must be {wanted}, got {value}")
    for field in fields(settings):
        if is_dataclass(value := getattr(settings, field.name)):
            within(f"{group}.{field.name}", value)


@cache
def bounds_of(kind: Any) -> dict[str, Within]:
    """Return the bounds of the fields of a kind of settings that have any."""
    return {
        name: each
        for name, hint in get_type_hints(kind, include_extras=True).items()
        for each in getattr(hint, "__metadata__", ())
        if isinstance(each, Within)
    }


def to_json(settings: Any) -> dict[str, Any]:
    """Return settings as JSON values."""
    return asdict(settings)


LATER = {
    "agent.dreamer.starts": 1.0,
    "agent.ensemble.layers": None,
    "agent.ensemble.target": "sample",
    "agent.ensemble.units": None,
    "agent.normalise": "off",
    "agent.starts": 1.0,
    "agent.task_actor": "on",
    "env.appears": "fixed",
    "env.floor": "plain",
    "env.max_restarts": None,
    "env.object_size": 1,
    "env.rooms": 2,
    "env.television": 0,
    "record.keep_at": (),
    "replay.repeats": True,
    "train.graphs": False,
    "train.precision": "float32",
}
"""Settings that runs of earlier versions do not have, and what such runs did."""
RENAMED = {
    "agent.precision": "train.precision",
    "agent.dreamer.precision": "train.precision",
}
"""Settings that runs of earlier versions have under another name."""


def knows(kind: Any, path: str) -> bool:
    """Return whether settings of this kind have one of this name, as "dreamer.size"."""
    name, _, inside = path.partition(".")
    if not is_dataclass(kind) or name not in kind.__dataclass_fields__:
        return False
    return not inside or knows(get_type_hints(kind)[name], inside)


def with_new_names(values: Mapping[str, Any], kinds: Mapping[str, type]) -> Mapping[str, Any]:
    """Return the groups of settings of a run, all of them under their present names."""
    for old, new in RENAMED.items():
        group, _, path = old.partition(".")
        found = _pop(values[group], path)
        if found is not None and not knows(kinds[group], path):
            rest, value = found
            there, _, name = new.partition(".")
            values = {**values, group: rest, there: {name: value, **values[there]}}
    return values


def _pop(values: Any, path: str) -> tuple[dict[str, Any], Any] | None:
    """Return the group without the setting, and the setting; None if it is not there."""
    name, _, inside = path.partition(".")
    if not isinstance(values, dict) or name not in values:
        return None
    if not inside:
        return {key: value for key, value in values.items() if key != name}, values[name]
    found = _pop(values[name], inside)
    return None if found is None else ({**values, name: found[0]}, found[1])


def from_json(kind: type, values: Any, path: str) -> Any:
    """Make settings of this kind; a missing, unknown or wrong value is an error that names it."""
    if not isinstance(values, dict):
        raise UsageError(f"{path} must be a group of settings, got {values!r}")
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind)]
    for name in values:
        if name not in names:
            raise UsageError(f"unknown setting {path}.{name}; {path} has {', '.join(names)}")
    values = {n: LATER[f"{path}.{n}"] for n in names if f"{path}.{n}" in LATER} | values
    for name in names:
        if name not in values:
            raise UsageError(f"the setting {path}.{name} is missing")
    return kind(**{name: _value(hints[name], values[name], f"{path}.{name}") for name in names})


def _value(kind: Any, value: Any, path: str) -> Any:
    if is_dataclass(kind):
        return from_json(kind, value, path)  # type: ignore[arg-type]  # is a type here
    origin = get_origin(kind)
    if origin is Literal:
        fits = value in get_args(kind)
    elif origin in (Union, types.UnionType):
        return _one_of(get_args(kind), value, path)
    elif origin is tuple:
        return _tuple(get_args(kind), value, path)
    elif kind is float:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        value = float(value) if fits else value
    elif kind is int:
        fits = isinstance(value, int) and not isinstance(value, bool)
    else:
        fits = isinstance(value, kind)
    if not fits:
        wanted = " or ".join(map(repr, get_args(kind))) if origin is Literal else kind.__name__
        raise UsageError(f"{option(path)} must be {wanted}, got {value!r}")
    return value


def _one_of(kinds: tuple[Any, ...], value: Any, path: str) -> Any:
    if value is None and type(None) in kinds:
        return None
    (kind,) = (kind for kind in kinds if kind is not type(None))  # all our unions are "or None"
    return _value(kind, value, path)


def _tuple(kinds: tuple[Any, ...], value: Any, path: str) -> Any:
    if not isinstance(value, list | tuple):
        raise UsageError(f"{option(path)} must be a list, got {value!r}")
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return tuple(_value(kinds[0], each, path) for each in value)
    if len(value) != len(kinds):
        raise UsageError(f"{option(path)} takes {len(kinds)} values at a time, got {value!r}")
    return tuple(_value(kind, each, path) for kind, each in zip(kinds, value, strict=True))
