"""The pretended device itself: a fault of each kind is caught, with its place."""

import pytest
import torch
from helpers.device.pretended import NAME, MixedDevicesError, pretend
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks import maths
from curious_replay.agents.blocks.heads import TwoHot, even_bins


@pytest.fixture
def events():
    with pretend() as events:
        yield events


def there(*shape):
    return torch.ones(*shape).to(NAME)


@pytest.mark.parametrize("other", [torch.ones(3), torch.ones(())], ids=["vector", "number"])
def test_mixing_devices_raises(events, other):
    x = there(3)
    with pytest.raises(MixedDevicesError, match="on the host"):
        x * other
    with pytest.raises(MixedDevicesError):
        torch.stack([x, torch.ones(3)])
    assert (x * 2).sum().item() == 6


DRAWS = {
    "new": lambda host, device: torch.rand(2, generator=host, device=NAME),
    "in place": lambda host, device: there(2).normal_(generator=host),
    "choices": lambda host, device: torch.multinomial(there(3), 1, generator=host),
    "new on the host": lambda host, device: torch.rand(2, generator=device),
    "in place on the host": lambda host, device: torch.ones(2).normal_(generator=device),
    "choices on the host": lambda host, device: torch.bernoulli(torch.ones(2), generator=device),
}


@pytest.mark.parametrize("draw", DRAWS)
def test_a_generator_of_another_device_raises(events, draw):
    host, device = torch.Generator(), torch.Generator(NAME)
    with pytest.raises(MixedDevicesError, match="a generator of another device"):
        DRAWS[draw](host, device)
    with pytest.raises(MixedDevicesError):
        DRAWS[draw](host, device.clone_state())
    own = (device, host)  # each where it belongs
    DRAWS[draw](*own)


def test_mixing_is_told_with_the_line_of_the_package(events):
    with pytest.raises(MixedDevicesError, match=r"at agents/blocks/heads\.py:\d+"):
        TwoHot(there(2, 255), even_bins(255)).loss(there(2))


def test_operations_that_compute_are_kernels_and_views_are_none(events):
    x = there(4, 4)
    assert not events.kernels
    y = x.T.reshape(2, 8)[:, 1:].unsqueeze(0)
    assert sum(events.kernels.values()) == 1  # the copy that is contiguous
    maths.symlog(y)
    assert [key.partition(" at ")[0] for key in events.kernels][1:] == [
        "sign",
        "abs",
        "log1p",
        "mul",
    ]
    assert all("agents/blocks/maths.py:" in key for key in [*events.kernels][1:])


def test_gradients_are_counted_too(events):
    x = there(3).requires_grad_()
    before = events.totals()["kernels"]
    (gradient,) = torch.autograd.grad((x * x).sum(), x)
    assert events.totals()["kernels"] >= before + 5  # product, sum, two products, their sum
    assert gradient.cpu().tolist() == [2, 2, 2]


READS = {
    "item": lambda x: x.sum().item(),
    "float": lambda x: float(x.sum()),
    "if": lambda x: 1 if (x > 0).all() else 2,
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "mask": lambda x: x[x > 0],
    "unique": lambda x: x.unique(),
    "nonzero": lambda x: x.nonzero(),
    "equal": lambda x: torch.equal(x, x),
    "repeat": lambda x: x.repeat_interleave(torch.ones_like(x).long()),
    "new_tensor": lambda x: x.new_tensor([1.0]),
    "constant": lambda x: torch.arange(3).to(x),
    "copy_": lambda x: x.copy_(torch.ones(3)),
}


@pytest.mark.parametrize("read", READS)
def test_what_makes_the_host_wait_is_counted(events, read):
    x = there(3)
    events.clear()
    READS[read](x)
    assert events.totals()["synchronisations"] >= 1
    assert all(" at " in key for key in events.synchronisations)


WAIT_FOR_NOTHING = {
    "where": lambda x: torch.where(x > 0, x, -x),
    "index": lambda x: x[torch.zeros(2, dtype=torch.int64, device=NAME)],
    "masked_fill": lambda x: x.masked_fill(x > 0, 0.0),
    "constant": lambda x: torch.arange(3, device=NAME) + x,
    "sort": lambda x: x.sort().values.cumsum(0),
    "attention": lambda x: F.scaled_dot_product_attention(*[x.view(1, 1, 1, 3)] * 3),
}


@pytest.mark.parametrize("act", WAIT_FOR_NOTHING)
def test_what_does_not_is_not(events, act):
    x = there(3)
    events.clear()
    WAIT_FOR_NOTHING[act](x)
    assert events.kernels
    assert not events.synchronisations
    assert not events.transfers


def test_copies_are_counted_with_their_bytes_and_wait_unless_memory_is_pinned(events):
    array = torch.zeros(5, dtype=torch.uint8)
    x = array.to(NAME)
    assert events.totals() == {"synchronisations": 1, "transfers": 1, "bytes": 5, "kernels": 0}
    array.to(NAME, non_blocking=True)  # from memory that may be moved meanwhile
    assert events.totals()["synchronisations"] == 2
    array.pin_memory().to(NAME, non_blocking=True)
    assert events.totals()["synchronisations"] == 2
    x.float().cpu()
    assert events.totals() == {"synchronisations": 3, "transfers": 4, "bytes": 35, "kernels": 1}


def test_fused_attention_is_one_kernel_each_way(events):
    query = torch.randn(2, 3, 4, 8, generator=torch.Generator().manual_seed(0))
    x, look = query.to(NAME).requires_grad_(), torch.ones(4, 4, dtype=torch.bool).tril().to(NAME)
    events.clear()
    found = F.scaled_dot_product_attention(x, x.detach(), x.detach(), look)
    (gradient,) = torch.autograd.grad(found, x, torch.ones_like(found))
    assert sum(count for key, count in events.kernels.items() if "attention" in key) == 2
    own = query.clone().requires_grad_()
    wanted = F.scaled_dot_product_attention(own, query, query, look.cpu())
    torch.testing.assert_close(found.detach().cpu(), wanted)
    torch.testing.assert_close(gradient.cpu(), torch.autograd.grad(wanted.sum(), own)[0])


def test_a_generator_has_a_short_state_and_goes_on_from_it(events):
    generator = torch.Generator(NAME).manual_seed(3)
    state = generator.get_state()
    assert state.numel() == 16
    drawn = torch.rand(2, generator=generator, device=NAME)
    clone = generator.clone_state()
    assert clone.device.type == NAME
    after = [torch.rand(2, generator=g, device=NAME).cpu() for g in (generator, clone)]
    assert torch.equal(*after)
    again = torch.rand(2, generator=generator.set_state(state), device=NAME)
    assert torch.equal(again.cpu(), drawn.cpu())
    with pytest.raises(RuntimeError, match="wrong size"):
        generator.set_state(torch.Generator().get_state())


def test_outside_of_it_there_is_no_device():
    with pretend():
        x = there(3)
    with pytest.raises(RuntimeError, match="outside of `pretend`"):
        x + 1
    assert type(torch.Generator()) is torch.Generator
