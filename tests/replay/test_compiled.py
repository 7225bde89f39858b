"""What is compiled is kept where there is a place for it."""

import numba

from curious_replay.replay import compiled


def test_without_a_place_to_keep_results_it_compiles_anew(monkeypatch):
    njit = numba.njit

    def refuse_to_keep(*arguments, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return njit(*arguments, **options)

    monkeypatch.setattr(numba, "njit", refuse_to_keep)
    assert compiled.compiled(lambda x: x + 1)(2) == 3
