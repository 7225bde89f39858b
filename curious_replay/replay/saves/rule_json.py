"""Rules as JSON values, as they stand in a saved buffer."""

from collections.abc import Mapping
from typing import Any

from curious_replay.replay import mixture, priority
from curious_replay.replay.mixture import Balanced, Mixture
from curious_replay.replay.rule import Rule

_OURS = {
    name: kind
    for module in (priority, mixture)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, Rule | Mixture)
}


def rule_to_json(rule: Rule | Mixture) -> dict[str, Any]:
    """Describe a rule as JSON values."""
    kind = type(rule)
    if _OURS.get(kind.__name__) is not kind:
        return {"type": f"{kind.__module__}.{kind.__qualname__}", "rule": repr(rule)}
    settings = rule.settings() if isinstance(rule, Balanced) else vars(rule)
    values = {
        name: rule_to_json(value) if isinstance(value, Rule) else value
        for name, value in settings.items()
    }
    return {"type": kind.__name__, **values}


def rule_from_json(values: Mapping[str, Any]) -> Rule | Mixture:
    """Make a rule of this package from what `rule_to_json` gave."""
    name = values.get("type")
    if isinstance(name, str) and "." in name:
        raise ValueError(f"the rule {name!r} is not one of this package: pass it as load(rule=...)")
    kind = _OURS.get(str(name))
    if kind is None:
        raise ValueError(f"there is no rule {name!r} in this package")
    settings: dict[str, Any] = {
        key: rule_from_json(value) if isinstance(value, Mapping) else value
        for key, value in values.items()
        if key != "type"
    }
    try:
        made: Rule | Mixture = kind(**settings)
    except TypeError as error:
        raise ValueError(f"the rule {name} cannot be made: {error}") from error
    return made


def same_rule(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Tell whether two descriptions are of one rule.

    A rule of one's own is known by its class and fields. The module does not count: a class of a
    script is in `__main__` while the script runs, and elsewhere when another imports it.
    """
    return _without_module(one) == _without_module(other)


def _without_module(values: Mapping[str, Any]) -> dict[str, Any]:
    plain = {
        key: _without_module(value) if isinstance(value, Mapping) else value
        for key, value in values.items()
    }
    if "rule" in plain:  # of one's own; `repr` names the class and its fields
        plain["type"] = str(plain["type"]).rpartition(".")[2]
    return plain
