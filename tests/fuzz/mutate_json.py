"""JSON that still is JSON, with values that nobody expected where they are."""

import copy
import json
import math
import random
from typing import Any

MARKED = {
    "@deep": "[" * 3000 + "]" * 3000,
    "@nested": '{"a":' * 200 + "1" + "}" * 200,
    "@digits": "9" * 5000,
    "@hundreds": "9" * 400,
    "@twice": '{"a": 1, "a": [2]}',
    "@half": '"\\ud800"',
}
"""What `json.dumps` would not write: put in place of these strings afterwards."""
STRANGE: list[Any] = [
    None, True, False, -1, 0, 1, 2, 63, 64, 2**31, 2**53, 2**63, -(2**63), 2**64, 2**127, 10**299,
    10**18, 1e308, -1e308, 5e-324, 0.5, math.nan, math.inf, -math.inf, "", "NaN", "x", "0", "é",
    "x" * 5000, "../../secret", "/etc/passwd", "..", "a/b", "\0", "<script>alert(1)</script>",
    "$x^{$", "O", "<f8", "|b1", "<i8", "Curious", "Mixture", "Rule", "np", "os:system", "crafter",
    [], {}, [[]], [None], [0], {"": 0}, {"type": "Curious"}, {"$array": "0"}, {"$tuple": 1},
    {"$pairs": [[[], 1]]}, {"$scalar": "0"}, {"$float": "x"}, [[0, "a"], [5, "b"]], *MARKED,
]  # fmt: skip


def _strange(rng: random.Random) -> Any:
    """One of them, a copy: it may be changed in turn, and the list must stay as it is."""
    return copy.deepcopy(rng.choice(STRANGE))


def mutate_json(content: Any, rng: random.Random) -> bytes:
    """Text of the content after one to three changes; `content` itself is changed as well."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        places = list(_places(content))
        if not places:
            content = _strange(rng)
            continue
        _change(*rng.choice(places), rng, places)
    if rng.random() < 0.01:
        content = _strange(rng)
    return to_text(content)


def to_text(content: Any) -> bytes:
    """JSON, with what stands for text that Python would not write."""
    text = json.dumps(content)
    for mark, instead in MARKED.items():
        if mark in text:
            text = text.replace(f'"{mark}"', instead)
    return text.encode()


def mutate_lines(data: bytes, rng: random.Random) -> bytes:
    """JSON lines with a line or two changed, doubled, left out or glued."""
    lines = data.split(b"\n")[:-1]
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(lines)) if lines else 0
        match rng.randrange(6):
            case 0:
                lines[at:at] = lines[at : at + 1]
            case 1:
                del lines[at : at + 1]
            case 2:
                lines[at : at + 2] = [b"".join(lines[at : at + 2])]
            case _:
                if lines:
                    try:
                        content = json.loads(lines[at])
                    except (ValueError, RecursionError):
                        continue
                    lines[at] = mutate_json(content, rng)
                    if rng.random() < 0.3:  # so that it is still written as the record writes
                        lines = [mutate_json_like(line, lines[at]) for line in lines]
    return b"\n".join(lines) + rng.choice([b"\n", b"\n", b""])


def mutate_json_like(line: bytes, pattern: bytes) -> bytes:
    """The values of `pattern` under the counters of `line`, where both can be parsed."""
    try:
        values, frame = json.loads(pattern), json.loads(line)["frame"]
        return json.dumps({"frame": frame, **values} | {"frame": frame}).encode()
    except (ValueError, TypeError, KeyError, RecursionError):
        return line


def _places(content: Any) -> Any:
    """Containers and the keys or positions in them."""
    todo = [content] if isinstance(content, dict | list) else []
    while todo:
        each = todo.pop()
        inside = list(each.items() if isinstance(each, dict) else enumerate(each))
        yield from ((each, key) for key, _ in inside)
        todo += [value for _, value in inside if isinstance(value, dict | list)]


def _change(inside: Any, key: Any, rng: random.Random, places: list[Any]) -> None:
    if key not in inside if isinstance(inside, dict) else key >= len(inside):
        return
    value = inside[key]
    match rng.randrange(10):
        case 0 | 1 | 2 | 3:
            inside[key] = _strange(rng)
        case 4 | 5 if isinstance(value, int | float) and abs(value) < 10**300:
            inside[key] = rng.choice([-value, value + 1, value - 1, value * 2, float(value), -1])
        case 6:
            other, where = rng.choice(places)
            if where in other if isinstance(other, dict) else where < len(other):
                inside[key] = json.loads(json.dumps(other[where]))  # a copy: no circles
        case 7:
            del inside[key]
        case 8 if isinstance(inside, dict):
            inside[rng.choice(["", "x", "$array", "__class__", "../x", "/etc/passwd"])] = value
        case 9 if isinstance(inside, list):
            inside.extend(inside[:3])
        case _:
            inside[key] = _strange(rng)
