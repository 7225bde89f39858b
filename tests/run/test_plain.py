import json

import numpy as np
import pytest

from curious_replay.run.record.serialize import pack, unpack

STATE = {
    "text": "a",
    "big": 2**127 + 1,
    "float": 0.1 + 0.2,
    "not finite": [float("inf"), -float("inf")],
    "flags": [True, False, None],
    "array": np.arange(6, dtype=np.int16).reshape(2, 3),
    "empty": np.zeros((0, 3)),
    "scalar": np.float32(0.1),
    "tuple": (1, ("x", np.uint8(3))),
    "keys": {(1, 2): "a", 3: {"$array": "looks like one of ours"}},
}


def same(a, b):
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray | np.generic):
        return type(a) is type(b) and a.dtype == b.dtype and np.array_equal(a, b)
    return type(a) is type(b) and a == b


def test_what_comes_back_is_what_was_given():
    arrays = {}
    text = json.dumps(pack(STATE, arrays), allow_nan=False)
    assert same(unpack(json.loads(text), arrays), STATE)


@pytest.mark.parametrize(
    "value", [object(), {"a": [set()]}, np.array([None]), b"bytes", np.datetime64("2023")]
)
def test_other_things_are_refused_with_their_place(value):
    with pytest.raises(TypeError, match="cannot be saved"):
        pack({"outer": value}, {})
    with pytest.raises(TypeError, match=r"state\.outer"):
        pack({"outer": value}, {})
