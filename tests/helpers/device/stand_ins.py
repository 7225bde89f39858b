"""Kernels that graphics cards have and CPUs have not, made of those that CPUs have."""

import torch
from torch.nn import functional as F  # noqa: N812


def lstm_cell(of_input, of_hidden, cell, input_bias, hidden_bias):
    gates = of_input + of_hidden + input_bias + hidden_bias
    into, keep, new, out = gates.chunk(4, 1)
    into, keep, new, out = into.sigmoid(), keep.sigmoid(), new.tanh(), out.sigmoid()
    after = keep * cell + into * new
    return out * after.tanh(), after, torch.cat([into, keep, new, out], 1)


def lstm_cell_gradient(of_hidden, of_cell, before, after, workspace, _has_bias):
    into, keep, new, out = workspace.chunk(4, 1)
    of_hidden = torch.zeros_like(after) if of_hidden is None else of_hidden
    squashed = after.tanh()
    of_after = of_hidden * out * (1 - squashed.square())
    if of_cell is not None:
        of_after = of_after + of_cell
    of_gates = torch.cat(
        [
            of_after * new * into * (1 - into),
            of_after * before * keep * (1 - keep),
            of_after * into * (1 - new.square()),
            of_hidden * squashed * out * (1 - out),
        ],
        1,
    )
    return of_gates, of_after * keep, of_gates.sum(0)


INSTEAD = {
    "_thnn_fused_lstm_cell": lstm_cell,
    "_thnn_fused_lstm_cell_backward_impl": lstm_cell_gradient,
}
"""By the name of the operation."""


class Attention(torch.autograd.Function):
    """Fused attention on tensors that `hold` makes of those of the CPU: one kernel each way."""

    @staticmethod
    def forward(ctx, compute, hold, look, dropout, *places):
        look = None if look is None else look.held
        places = [each.held for each in places]
        found, keep = compute("fused attention", attend, (look, dropout, *places))
        ctx.compute, ctx.hold, ctx.given = compute, hold, (look, keep, *places)
        return hold(found)

    @staticmethod
    def backward(ctx, gradient):
        given = *ctx.given, gradient.held
        gradients = ctx.compute("gradient of fused attention", gradients_of_attention, given)
        return None, None, None, None, *map(ctx.hold, gradients)


def attend(look, dropout, *places):
    """Return what was found, and what each place keeps of each other, if any is dropped."""
    query, key, _ = places
    keep = None
    if dropout:
        keep = F.dropout(query.new_ones(*query.shape[:-1], key.shape[-2]), dropout)
    return attention(look, keep, *places), keep


def gradients_of_attention(look, keep, *places_and_gradient):
    *places, gradient = places_and_gradient
    places = [each.detach().requires_grad_() for each in places]
    with torch.enable_grad():
        found = attention(look, keep, *places)
    return torch.autograd.grad(found, places, gradient)


def attention(look, keep, query, key, value):
    if keep is None:
        return F.scaled_dot_product_attention(query, key, value, look)
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if look is not None:
        scores = scores.masked_fill(~look, -torch.inf)
    return (scores.softmax(-1) * keep) @ value
