"""What is compiled is kept, but never too long."""

import os

import numba

from curious_replay.replay import compiled


def test_results_older_than_a_source_are_forgotten(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    names = [
        "one.py",
        "two.py",
        "__pycache__/one.nbi",
        "__pycache__/one.nbc",
        "__pycache__/new.nbi",
    ]
    for name, time in zip(names, (100, 200, 150, 150, 250), strict=True):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (time, time))
    compiled.forget_stale_results(tmp_path)
    kept = sorted(path.name for path in (tmp_path / "__pycache__").iterdir())
    assert kept == ["new.nbi"]


def test_without_a_place_to_keep_results_it_compiles_anew(monkeypatch):
    njit = numba.njit

    def refuse_to_keep(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*arguments, **options)

    monkeypatch.setattr(numba, "njit", refuse_to_keep)
    assert compiled.compiled(lambda x: x + 1)(2) == 3
