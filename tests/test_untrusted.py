"""Files that nobody vouches for: each of these once led to something other than a clear error."""

import json
import os
import pickle
import shutil
import zipfile

import numpy as np
import pytest

from curious_replay.durable import checksum
from curious_replay.replay import LoadError, ReplayBuffer
from curious_replay.untrusted import (
    UnreadableError,
    check,
    folder_itself,
    open_file,
    read_arrays,
    read_json,
    read_object,
)


@pytest.fixture
def save(tmp_path):
    """A saved buffer of ten steps."""
    buffer = ReplayBuffer(20, 3)
    flags = dict.fromkeys(("is_first", "is_last", "is_terminal"), np.zeros(1, bool))
    for t in range(10):
        buffer.add({**flags, "x": np.full((1, 4), t, np.float32)})
    buffer.save(tmp_path / "save")
    return tmp_path / "save"


def change_manifest(folder, change):
    """Change the content of a manifest, and make its checksum right again."""
    path = folder / "replay.json"
    whole = json.loads(path.read_text())
    change(whole["content"])
    whole["crc32"] = checksum(whole["content"])
    path.write_text(json.dumps(whole))


def change_state(folder, **arrays):
    (path,) = folder.glob("save-*/state.npz")
    with np.load(path) as file:
        state = dict(file)
    np.savez(path, **state | arrays)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"[" * 5000 + b"]" * 5000, "no JSON"),  # RecursionError
        (b"[" * 65 + b"]" * 65, "nested deeper than 64"),
        (b"[" + b"9" * 400 + b"]", "too large"),  # OverflowError as soon as it becomes a float
        (b'["\\ud800"]', "surrogates not allowed"),  # UnicodeEncodeError when it is written
        (b"\xff\xfe", "no JSON"),
    ],
)
def test_json(text, said, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(text)
    with pytest.raises(UnreadableError, match=said) as caught:
        read_json(path)
    assert str(path) in str(caught.value)


def test_an_object_is_asked_for(tmp_path):
    (tmp_path / "a.json").write_text("[1]")
    with pytest.raises(UnreadableError, match="must hold a JSON object, it holds"):
        read_object(tmp_path / "a.json")


@pytest.mark.parametrize(
    ("value", "wanted", "said"),
    [
        (True, int, "x must be a whole number, got True"),
        (1.5, int, "x must be a whole number"),
        ({"a": 1, "b": 2}, {"a": int}, "unknown 'b'"),
        ({}, {"a": int}, "has no 'a'"),
        ([1, "b"], [int], r"x\[1\] must be a whole number, got 'b'"),
        ("b", (int, None), "must be null"),
        ("b", [int], "must be a list"),
        ([], {"a": int}, "must be an object"),
    ],
)
def test_values_of_another_kind(value, wanted, said):
    with pytest.raises(UnreadableError, match=said):
        check(value, wanted, "x")


def test_values_of_the_right_kind():
    check({"a": 1, "b": [None, 2, 0.5]}, {"a": int, "b": [(float, None)]}, "x")


def test_what_is_no_file_itself_is_not_opened(tmp_path):
    (tmp_path / "real").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
    for name, said in (
        ("link", "symbolic link"),
        ("pipe", "pipe"),
        (".", "folder"),
        ("no", "missing"),
    ):
        with pytest.raises(UnreadableError, match=said):
            open_file(tmp_path / name)


def archive(path, **members):
    with zipfile.ZipFile(path, "w") as out:
        for name, content in members.items():
            out.writestr(f"{name}.npy", content)


def npy(header, content=b""):
    head = f"{header}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + content


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000,), }",  # MemoryError
        "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<i3', 'fortran_order': False, 'shape': (1,), }",  # TypeError
        "{'descr': '<U0', 'fortran_order': False, 'shape': (1000,), }",
        "__import__('os').system('true')",
        "(" * 3000,
    ],
)
def test_headers_of_arrays(header, tmp_path):
    archive(tmp_path / "a.npz", x=npy(header, b"\0" * 8))
    with pytest.raises(UnreadableError, match=r"a\.npz is damaged or no NumPy archive"):
        read_arrays(tmp_path / "a.npz")


def test_objects_are_not_unpickled(tmp_path):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    content = pickle.dumps(np.array([Harm()], object))
    header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    archive(tmp_path / "a.npz", x=npy(header, content))
    with pytest.raises(UnreadableError):
        read_arrays(tmp_path / "a.npz")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    "bad", [np.array([0, 1, 7], np.uint8).view(bool), np.array([0xD800], "<u4").view("<U1")]
)
def test_bytes_that_numpy_would_not_write(bad, tmp_path):
    np.savez(tmp_path / "a.npz", x=bad)
    with pytest.raises(UnreadableError, match=r"neither true nor false|no characters"):
        read_arrays(tmp_path / "a.npz")


def test_an_archive_cannot_say_that_it_holds_more_than_it_does(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.zeros(3))
    data = bytearray((tmp_path / "a.npz").read_bytes())
    at = data.rindex(b"PK\x01\x02") + 24  # the size in the list of members
    data[at : at + 4] = (2**31).to_bytes(4, "little")
    (tmp_path / "a.npz").write_bytes(data)
    with pytest.raises(UnreadableError, match=f"cannot hold {2**31} bytes"):
        read_arrays(tmp_path / "a.npz")


def test_arrays_come_back_as_they_were(tmp_path):
    wanted = {
        "a": np.arange(6).reshape(2, 3), "b": np.array(["x", "yz"]), "c": np.float32(3),
        "d": np.zeros((0, 4), bool), "e": np.asfortranarray(np.ones((2, 3), ">i4")),
    }  # fmt: skip
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "a.npz", **wanted)
        found = read_arrays(tmp_path / "a.npz")
        assert found.keys() == wanted.keys()
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == np.asarray(array).dtype
            assert found[name].flags.writeable


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["settings"].update(capacity=10**15),  # MemoryError
        lambda c: c["settings"].update(num_envs=0),  # ZeroDivisionError
        lambda c: c["settings"].pop("length"),  # TypeError
        lambda c: c.update(chunks=[]),  # a crash: steps were drawn that were never read
        lambda c: c["chunks"][0].update(stop=10**6),
        lambda c: c["layout"][3].update(dtype="|O"),  # a crash: numbers taken for addresses
        lambda c: c["layout"][3].update(shape=[-4]),
        lambda c: c["layout"].pop(0),  # KeyError
        lambda c: c["random"].update(bit_generator="MT19937"),
        lambda c: c["random"]["state"].update(state=-1),  # OverflowError
        lambda c: c["rule"].update(type="np"),  # TypeError: a module is no rule
        lambda c: c["rule"].update(alpha="x"),
        lambda c: c.update(number="../../elsewhere"),  # ValueError without the file's name
        lambda c: c.update(minimum=[]),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(change, save):
    change_manifest(save, change)
    with pytest.raises(LoadError, match="save"):
        ReplayBuffer.load(save)


@pytest.mark.parametrize(
    "arrays",
    [
        {"clock": np.array([[10], [-5], [0]])},
        {"clock": np.array([[2**40], [2**40 - 10], [0]])},
        {"visits": np.full(20, -1, np.int32)},
        {"visits": np.zeros(20)},
        {"drawable": np.ones(20, bool)},  # a crash: windows of steps that are not there
        {"priorities_0": np.full(20, np.nan)},
        {"priorities_0": np.zeros(3)},
    ],
)
def test_a_state_that_does_not_fit_is_refused(arrays, save):
    change_state(save, **arrays)
    with pytest.raises(LoadError, match="save"):
        ReplayBuffer.load(save)


def test_no_link_is_followed_out_of_a_save(save, tmp_path):
    (folder,) = save.glob("save-*")
    chunk = next(folder.glob("chunk-*"))
    chunk.rename(tmp_path / "elsewhere")
    chunk.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LoadError, match="symbolic link"):
        ReplayBuffer.load(save)
    shutil.move(tmp_path / "elsewhere", chunk)
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(LoadError, match="symbolic link"):
        ReplayBuffer.load(save)


def test_flags_in_a_chunk_are_true_or_false(save):
    (path,) = save.glob("save-*/chunk-*")
    data = bytearray(path.read_bytes())
    data[0] = 7
    path.write_bytes(data)

    def repair(content):
        import zlib  # noqa: PLC0415

        content["chunks"][0]["crc32"][0] = zlib.crc32(data[:10])

    change_manifest(save, repair)
    with pytest.raises(LoadError, match="neither true nor false"):
        ReplayBuffer.load(save)


def test_names_longer_than_names_can_be(tmp_path):
    with pytest.raises(UnreadableError, match="cannot be opened"):
        folder_itself(tmp_path / ("x" * 300))
