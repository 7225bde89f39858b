"""Saves of TorchRL's buffers with our sampler: they go on as if nothing had happened."""

import copy
import json

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl", reason="TorchRL is not installed: pip install '.[torchrl]'")

from test_torchrl import World, make  # noqa: E402

import curious_replay as cr  # noqa: E402
from curious_replay.torchrl import CuriousSampler  # noqa: E402
from curious_replay.torchrl.state import FILE  # noqa: E402


def by_state(buffer, other, folder):
    torch.save(buffer.state_dict(), folder / "state.pt")
    other.load_state_dict(torch.load(folder / "state.pt", weights_only=False))


def by_files(buffer, other, folder):
    buffer.dumps(folder)
    other.loads(folder)


def fresh(world, rule=None, seed=0, **options):
    options = {"slice_len": 4, "end_key": "over", **options}
    sampler = CuriousSampler(rule or cr.Balanced(), **options)
    return make(world, 30 * (world.envs or 1), sampler, seed=seed)


def go_on(buffer, steps, losses):
    """Draw, learn and write; returns all that was drawn."""
    drawn = []
    for some, loss in zip(steps, losses, strict=True):
        batch = buffer.sample()
        drawn.append((batch["time"].tolist(), batch["index"].tolist()))
        buffer.update_priority(tuple(batch["index"].unbind(-1)), loss)
        buffer.extend(some.clone())
    return drawn


@pytest.mark.parametrize("envs", [None, 2])
@pytest.mark.parametrize("save", [by_state, by_files])
@pytest.mark.parametrize("before", [0, 12])  # batches: none was drawn yet, or many
def test_a_loaded_buffer_goes_on_exactly(save, before, envs, tmp_path):
    world = World("flag", envs)
    buffer, other = fresh(world), fresh(world, seed=9)
    losses = list(torch.rand(24, 8, generator=torch.Generator().manual_seed(1)))
    steps = [world.steps(5) for _ in range(24)]
    for some in steps[:9]:  # it has gone round
        buffer.extend(some.clone())
    go_on(buffer, steps[9 : 9 + before], losses[:before])
    buffer.extend(steps[-3].clone())  # not yet looked at
    ahead = buffer.sample()["index"] if before else None
    save(buffer, other, tmp_path)
    for each in (buffer, other) if before else ():  # what was drawn before the save
        each.update_priority(tuple(ahead.unbind(-1)), losses[20])
    rest = steps[21:], losses[12:15]
    drawn = go_on(buffer, *rest)
    assert go_on(other, *rest) == drawn
    assert other.sampler.stats() == buffer.sampler.stats()


def test_saving_again_writes_over_the_save_of_before(tmp_path):
    world = World("flag")
    buffer, other = fresh(world), fresh(world)
    for _ in range(3):
        buffer.extend(world.steps(20))
        buffer.update_priority(buffer.sample()["index"], torch.ones(8))
        buffer.dumps(tmp_path)
    other.loads(tmp_path)
    assert other.sampler.stats() == buffer.sampler.stats()


def test_what_was_saved_does_not_change(tmp_path):
    world = World("flag")
    buffer = fresh(world)
    buffer.extend(world.steps(30))
    index = buffer.sample()["index"]
    state = buffer.sampler.state_dict()
    saved = copy.deepcopy(state)
    buffer.update_priority(index, torch.ones(8))
    assert all((state["arrays"][name] == saved["arrays"][name]).all() for name in saved["arrays"])


def test_another_rule_goes_on_with_visits_and_losses(tmp_path):
    world = World("flag")
    buffer = fresh(world, cr.Adversarial())
    buffer.extend(world.steps(30))
    for _ in range(9):
        buffer.update_priority(buffer.sample()["index"], torch.rand(8))
    buffer.dumps(tmp_path)
    other, rule = fresh(world, cr.Curious()), cr.Curious()
    other.loads(tmp_path)
    visits = buffer.sampler.visits(torch.arange(30))
    assert visits.max() > 1
    assert np.array_equal(other.sampler.visits(torch.arange(30)), visits)
    before, after = (each.sampler.priorities(torch.arange(30)) for each in (buffer, other))
    trained = (visits > 0) & (before > 0)
    expected = rule.c * rule.beta ** (visits - 1.0) + before
    assert np.allclose(after[trained], expected[trained])
    assert (after[(visits == 0) & (before > 0)] == rule.p_max).all()


@pytest.mark.parametrize(
    "options", [{"slice_len": 8}, {"window": "first"}, {"cross_episodes": True}]
)
def test_a_save_of_other_slices_is_refused(options, tmp_path):
    world = World("flag")
    buffer = fresh(world)
    buffer.extend(world.steps(30))
    buffer.sample()
    buffer.dumps(tmp_path)
    with pytest.raises(cr.UsageError, match=r"sampler is of Shape\(.*this sampler is of Shape"):
        fresh(world, **options).loads(tmp_path)


def broken(change):
    """A change of the saved content, as JSON."""

    def apply(arrays):
        content = json.loads(str(arrays["content"]))
        change(content["steps"])
        arrays["content"] = np.array(json.dumps(content))

    return apply


DAMAGE = {
    "has no array 'visits'": lambda arrays: arrays.pop("visits"),
    "ends must be bool": lambda arrays: arrays.update(ends=arrays["ends"][:-1]),
    "begin after they end": lambda arrays: arrays["clock"].__setitem__(1, 10**6),
    "has the format 'another'": broken(lambda steps: steps.update(format="another")),
    "has no 'written'": broken(lambda steps: steps.pop("written")),
    "no slices of": broken(lambda steps: steps["shape"].update(rows=0)),
    "does not say what it holds": lambda arrays: arrays.update(content=np.array("3")),
}


@pytest.mark.parametrize("complaint", DAMAGE)
def test_a_damaged_save_is_refused(complaint, tmp_path):
    world = World("flag")
    buffer = fresh(world)
    buffer.extend(world.steps(30))
    buffer.sample()
    buffer.dumps(tmp_path)
    path = tmp_path / "sampler" / FILE
    with np.load(path) as saved:
        arrays = dict(saved)
    DAMAGE[complaint](arrays)
    np.savez(path, **arrays)
    with pytest.raises(cr.UsageError, match=complaint):
        fresh(world).loads(tmp_path)


def test_a_folder_without_a_save_is_refused(tmp_path):
    with pytest.raises(cr.UsageError, match=f"has no {FILE}"):
        CuriousSampler(slice_len=4).loads(tmp_path)
