"""The recurrent model against the same thing written step by step."""

import torch
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.dense import DREAMER_V3
from curious_replay.agents.blocks.latents import Categorical
from curious_replay.agents.blocks.rssm import Rssm, State
from curious_replay.agents.blocks.shortcuts.shared_weight import SharedWeight

STEPS, ROWS, EMBEDDING, ACTIONS = 6, 3, 5, 2


def make(seed=0):
    torch.manual_seed(seed)
    rssm = Rssm(EMBEDDING, ACTIONS, 7, 8, Categorical(3, 4, 0.01), DREAMER_V3, learned_start=True)
    rssm.first.data.normal_()
    return rssm.double()


def inputs():
    torch.manual_seed(1)
    embedding = torch.randn(STEPS, ROWS, EMBEDDING, dtype=torch.float64, requires_grad=True)
    action = torch.randn(STEPS, ROWS, ACTIONS, dtype=torch.float64, requires_grad=True)
    is_first = torch.zeros(STEPS, ROWS, dtype=torch.bool)
    is_first[0] = is_first[3, 1] = is_first[5, 0] = True
    return embedding, action, is_first, torch.rand(STEPS, ROWS, 3)


def step_by_step(rssm, embedding, action, is_first, noise):
    """Row by row and step by step, nothing hoisted, gradients left to autograd."""
    features, posts = [], []
    for row in range(ROWS):
        for t in range(STEPS):
            act = action[t, row : row + 1]
            if is_first[t, row]:
                state, act = rssm.start(1), torch.zeros_like(act)
            act = act / act.detach().abs().clamp(min=1)
            x = rssm.inputs(torch.cat([state.stoch, act], -1))
            deter = rssm.gru(x, state.deter)
            hidden = rssm.post_hidden(torch.cat([deter, embedding[t, row : row + 1]], -1))
            post = rssm.post_output(hidden)
            state = State(deter, rssm.latent.sample(post, noise[t, row : row + 1]))
            features.append(state.feature[0])
            posts.append(post[0])
    shape = (ROWS, STEPS, -1)
    return torch.stack(features).view(shape), torch.stack(posts).view(shape)


def test_observe_equals_the_loop_with_all_gradients():
    rssm, given = make(), inputs()
    states, posts = rssm.observe(*given)
    slow_features, slow_posts = step_by_step(rssm, *given)
    torch.testing.assert_close(states.feature.transpose(0, 1), slow_features)
    torch.testing.assert_close(posts.transpose(0, 1), slow_posts)
    weights = torch.randn(ROWS, STEPS, 7 + 12 + 12, dtype=torch.float64)

    def gradients(features, outputs):
        names, parameters = zip(*rssm.named_parameters(), strict=True)
        loss = (torch.cat([features, outputs], -1) * weights).sum()
        found = torch.autograd.grad(loss, [*parameters, *given[:2]], allow_unused=True)
        return dict(zip([*names, "embedding", "action"], found, strict=True))

    fast = gradients(states.feature.transpose(0, 1), posts.transpose(0, 1))
    slow = gradients(slow_features, slow_posts)
    assert fast.keys() == slow.keys()
    for name, gradient in slow.items():
        assert gradient is not None, name
        torch.testing.assert_close(fast[name], gradient, msg=name)


def test_nothing_before_a_first_step_reaches_beyond_it():
    rssm, (embedding, action, is_first, noise) = make(), inputs()
    states, _ = rssm.observe(embedding, action, is_first, noise)
    states.feature[3:, 1].sum().backward()
    assert embedding.grad[:3, 1].abs().max() == 0
    assert action.grad[:4, 1].abs().max() == 0  # the action that led there neither
    assert embedding.grad[3:, 1].abs().min() > 0


def test_observe_goes_on_from_a_given_state():
    rssm, (embedding, action, is_first, noise) = make(), inputs()
    whole, _ = rssm.observe(embedding, action, is_first, noise)
    half, _ = rssm.observe(embedding[:2], action[:2], is_first[:2], noise[:2])
    state = State(half.deter[-1], half.stoch[-1])
    rest, _ = rssm.observe(embedding[2:], action[2:], is_first[2:], noise[2:], state)
    torch.testing.assert_close(rest.feature, whole.feature[2:])


def test_imagine_is_observe_with_the_prior():
    rssm, (_, action, _, noise) = make(), inputs()
    start = rssm.start(ROWS)
    state = rssm.imagine(start, action[0], noise[0])
    bounded = action[0] / action[0].abs().clamp(min=1)
    deter = rssm.gru(rssm.inputs(torch.cat([start.stoch, bounded], -1)), start.deter)
    torch.testing.assert_close(state.deter, deter)
    torch.testing.assert_close(state.stoch, rssm.latent.sample(rssm.prior(deter), noise[0]))


def test_first_state_is_the_mode_of_its_prior():
    rssm = make()
    state = rssm.start(2)
    torch.testing.assert_close(state.deter[0], rssm.first.tanh())
    probabilities = rssm.prior(state.deter).view(2, 3, 4)
    assert state.stoch.view(2, 3, 4).argmax(-1).tolist() == probabilities.argmax(-1).tolist()
    state.stoch[:, 0].sum().backward()
    assert rssm.first.grad.abs().max() > 0
    assert rssm.prior_output.weight.grad.abs().max() > 0


def test_shared_weight_gives_autograds_gradient():
    torch.manual_seed(0)
    weight = torch.randn(4, 4, requires_grad=True, dtype=torch.float64)
    addend = torch.randn(5, 2, 4, requires_grad=True, dtype=torch.float64)
    results = []
    for shared in (True, False):
        product = SharedWeight(weight, addend)
        x, total = torch.ones(2, 4, dtype=torch.float64), 0.0
        for t in range(5):
            x = torch.tanh(product(x) if shared else F.linear(x, weight) + addend[t])
            total = total + (x * x).sum()
        results.append(torch.autograd.grad(total, [weight, addend]))
    for fast, slow in zip(*results, strict=True):
        torch.testing.assert_close(fast, slow)
