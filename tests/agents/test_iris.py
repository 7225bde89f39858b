"""IRIS: transformer and cache, stages and streams, what learns from what, and its errors."""

import dataclasses

import numpy as np
import pytest
import torch
from batches import make_batch, with_streams
from safetensors.torch import save_file
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.latents import draw
from curious_replay.agents.blocks.perceptual import STAGES, PerceptualLoss
from curious_replay.agents.blocks.tokenizer import PLACES, Tokenizer
from curious_replay.agents.blocks.transformer import Transformer, seeded
from curious_replay.agents.interface import NonFiniteError, Stream
from curious_replay.agents.iris import Iris
from curious_replay.agents.iris_config import SIZES, IrisConfig
from curious_replay.agents.iris_model import BLOCK, Dream, TokenModel
from curious_replay.agents.spaces import Spaces

SPACES = Spaces(4, discrete=True, image=(32, 32))
DEBUG = IrisConfig(
    size="debug", context=8, frames=4, starts=3, burn_in=2, imagination=3,
    model_after=0, actor_after=0,
)  # fmt: skip
PARTS = ("tokenizer", "model", "actor_critic")


def make(seed=0, **changes):
    return Iris(dataclasses.replace(DEBUG, **changes), SPACES, seed)


def batch_for(agent, rows=3, steps=8, seed=0, **kwargs):
    streams = {name: (each.windows, each.length) for name, each in agent.streams.items()}
    return with_streams(make_batch(rows, steps, seed=seed, **kwargs), streams, **kwargs)


def parameters(module):
    return {name: value.detach().clone() for name, value in module.named_parameters()}


def differ(before, module):
    return any(not torch.equal(before[name], value) for name, value in module.named_parameters())


def changed_parts(agent, act):
    before = {part: parameters(getattr(agent, part)) for part in PARTS}
    act()
    return {part for part in PARTS if differ(before[part], getattr(agent, part))}


@pytest.fixture
def model():
    """A world model of a context of 4 steps whose opinions are strong."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = TokenModel(SIZES["debug"], 4, 4)
        for name, value in made.named_parameters():
            if "norm" not in name:
                torch.nn.init.normal_(value, std=0.3 if "head.2.bias" in name else 1.0)
    return made.requires_grad_(False)


def random_tokens(*shape, below=8, seed=0):
    return torch.randint(below, shape, generator=torch.Generator().manual_seed(seed))


# The transformer.


@pytest.mark.parametrize("pieces", [[20], [1] * 20, [16, 1, 1, 2], [3, 17]])
def test_the_cache_says_what_a_full_pass_says(pieces):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        transformer = Transformer(3, 2, 8).requires_grad_(False)
        text, other = torch.randn(2, 5, 20, 8)
    full = transformer(text)
    cache = transformer.make_cache(5, 20)
    for _ in range(2):  # a cache that was full and cleared is as good as new
        parts = [transformer(part, cache=cache) for part in text.split(pieces, 1)]
        torch.testing.assert_close(torch.cat(parts, 1), full, rtol=1e-5, atol=1e-5)
        assert cache.size == 20
        with pytest.raises(ValueError, match="21 tokens do not fit into a cache of 20"):
            transformer(text[:, :1], cache=cache)
        cache.clear()
        transformer(other, cache=cache)  # leaves something behind
        cache.clear()


def test_no_token_sees_what_comes_after_it():
    with torch.random.fork_rng():
        torch.manual_seed(1)
        transformer = Transformer(2, 2, 8).requires_grad_(False)
        text = torch.randn(1, 10, 8)
    changed = text.clone()
    changed[:, 6:, 0] += 1
    before, after = transformer(text), transformer(changed)
    torch.testing.assert_close(before[:, :6], after[:, :6])
    assert (before[:, 6:] - after[:, 6:]).abs().amax(-1).min() > 0.01


@pytest.mark.parametrize(("size", "std"), [("paper", 0.02), ("nano", 0.1), ("micro", 0.2)])
def test_first_weights_are_as_large_as_the_size_says(size, std):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = TokenModel(SIZES[size], 4, 4)
    for weight in (made.positions.weight, made.transformer.layers[0].dense.weight):
        assert weight.std().item() == pytest.approx(std, rel=0.05)
    assert not made.transformer.layers[0].dense.bias.any()


def test_dropout_is_decided_by_the_generator():
    with torch.random.fork_rng():
        transformer = Transformer(1, 2, 8).requires_grad_(False)
        text = torch.randn(1, 4, 8)

    def drop(seed):
        with seeded(torch.Generator().manual_seed(seed)):
            return transformer(text, dropout=0.5)

    assert torch.equal(drop(0), drop(0))
    assert not torch.equal(drop(0), drop(1))
    assert not torch.equal(drop(0), transformer(text))


def test_an_episode_within_a_window_is_read_as_one_of_its_own(model):
    tokens, actions = random_tokens(2, 4, PLACES), random_tokens(2, 4, below=4)
    rewards, ends = random_tokens(2, 4, below=3), random_tokens(2, 4, below=2)
    is_first = torch.tensor([[True, False, True, False], [True, False, False, False]])
    whole = model.costs(tokens, actions, rewards, ends, is_first)
    for window in (slice(0, 2), slice(2, 4)):
        inputs = (x[:1, window] for x in (tokens, actions, rewards, ends, is_first))
        part = model.costs(*inputs)
        for found, expected in zip(whole, part, strict=True):
            torch.testing.assert_close(found[:1, window], expected, rtol=1e-4, atol=1e-5)
    alone = model.costs(*(x[1:] for x in (tokens, actions, rewards, ends, is_first)))
    torch.testing.assert_close(whole.tokens[1:], alone.tokens, rtol=1e-4, atol=1e-5)


def test_what_an_action_leads_to_is_predicted_from_it(model):
    tokens, actions = random_tokens(1, 3, PLACES), torch.tensor([[0, 1, 2]])
    zeros, first = torch.zeros(1, 3, dtype=torch.int64), torch.tensor([[True, False, False]])
    before = model.costs(tokens, actions, zeros, zeros, first)
    after = model.costs(tokens, torch.tensor([[0, 3, 2]]), zeros, zeros, first)
    for old, new in zip(before, after, strict=True):
        torch.testing.assert_close(old[:, :2], new[:, :2])  # the action of step 1 comes after it
        assert abs(old[0, 2] - new[0, 2]) > 1e-4
    last = model.costs(tokens, torch.tensor([[0, 1, 3]]), zeros, zeros, first)
    torch.testing.assert_close(last, before)  # nothing is known of what the last one led to


def slow_step(model, text, action, noise):
    """What follows `text`, a list of embedded tokens, by passes over all of it without a cache."""

    def said():
        stacked = torch.stack(text, 1) + model.positions.weight[: len(text)]
        return model.transformer(stacked)[:, -1]

    text.append(model.actions(action))
    chances = iter(noise.T.contiguous())
    reward, end = (
        draw(F.softmax(head(said()), -1), next(chances))
        for head in (model.reward_head, model.end_head)
    )
    tokens = []
    for chance in chances:
        tokens.append(draw(F.softmax(model.token_head(said()), -1), chance))
        text.append(model.tokens(tokens[-1]))
    return torch.stack(tokens, 1), reward - 1, end


def test_a_dream_is_what_full_passes_say_also_when_the_context_is_full(model):
    tokens = random_tokens(3, PLACES)
    dream, room = Dream(model, tokens), 4 * BLOCK
    text = [*model.tokens(tokens).unbind(1)]
    restarts, pictures = 0, set()
    for t in range(9):
        if len(text) + BLOCK > room:  # the next action and picture would not fit
            text, restarts = [*model.tokens(tokens).unbind(1)], restarts + 1
        action = random_tokens(3, below=4, seed=t)
        noise = torch.rand(3, PLACES + 2, generator=torch.Generator().manual_seed(t))
        outcome = dream.step(action, noise)
        tokens, reward, end = slow_step(model, text, action, noise)
        assert torch.equal(outcome.tokens, tokens)
        pictures |= {tuple(row) for row in tokens.tolist()}
        assert torch.equal(outcome.reward, reward.float())
        assert torch.equal(outcome.ends, end.float())
    assert restarts == 2
    assert len(pictures) > 10  # it does not say the same all the time


def test_dreams_are_drawn_by_their_probabilities(model):
    rows = 20_000
    dream = Dream(model, random_tokens(1, PLACES).expand(rows, -1))
    noise = torch.rand(rows, PLACES + 2, generator=torch.Generator().manual_seed(0))
    outcome = dream.step(torch.zeros(rows, dtype=torch.int64), noise)
    text = torch.cat([model.tokens(random_tokens(1, PLACES)), model.actions.weight[:1][None]], 1)
    said = model.transformer(text + model.positions.weight[:BLOCK])[:, -1]
    for head, values in (
        (model.reward_head, outcome.reward + 1),
        (model.end_head, outcome.ends),
        (model.token_head, outcome.tokens[:, 0]),
    ):
        expected = F.softmax(head(said)[0], -1)
        found = torch.bincount(values.long(), minlength=len(expected)) / rows
        torch.testing.assert_close(found, expected, rtol=0, atol=0.015)


# The tokenizer.


@pytest.mark.parametrize("pixels", [32, 64, 128])
def test_a_picture_is_sixteen_tokens(pixels):
    with torch.random.fork_rng():
        tokenizer = Tokenizer(pixels, 4, 2, 1, codes=8, code=4)
        picture = torch.rand(2, pixels, pixels, 3) * 2 - 1
    seen = tokenizer(picture)
    assert seen.tokens.shape == (2, 16)
    assert seen.picture.shape == picture.shape
    assert torch.equal(tokenizer.read(picture), seen.tokens)
    drawn = tokenizer.draw(seen.tokens)
    torch.testing.assert_close(drawn, seen.picture.clamp(-1, 1))


def test_gradients_pass_through_the_choice_of_a_code():
    with torch.random.fork_rng():
        torch.manual_seed(0)
        tokenizer = Tokenizer(32, 4, 2, 1, codes=8, code=4)
        picture = torch.rand(2, 32, 32, 3) * 2 - 1
    loss = (tokenizer(picture).picture - picture).abs().mean()
    first, book = tokenizer.encoder[0].weight, tokenizer.codebook
    of_encoder, of_book = torch.autograd.grad(loss, [first, book], allow_unused=True)
    assert of_encoder.abs().max() > 0
    assert of_book is None  # the codebook learns from its own loss only


# What learns from what, and when.


def test_each_part_learns_from_its_own_loss_only():
    agent = make()
    batch = batch_for(agent)
    frames = agent._pictures(batch["frames/image"]).flatten(0, 1)
    assert changed_parts(agent, lambda: agent.learn_to_see(frames)) == {"tokenizer"}
    study = lambda: agent.study(batch, agent._load(batch["reward"]))  # noqa: E731
    assert changed_parts(agent, study) == {"model"}
    assert changed_parts(agent, lambda: agent.practise(batch)) == {"actor_critic"}


@pytest.mark.parametrize(
    ("stream", "metric"),
    [
        ("frames/image", "tokenizer/loss"),
        ("image", "model/loss"),
        ("starts/image", "actor_critic/value"),
    ],
)
def test_each_stream_reaches_its_part(stream, metric):
    batch = batch_for(make())
    before = make().update(batch).metrics
    batch[stream] = 255 - batch[stream]
    after = make().update(batch).metrics
    others = {name.split("/")[0] for name in before if before[name] != after[name]}
    assert before[metric] != after[metric]
    if stream == "image":
        assert others == {"model"}
    if stream == "starts/image":
        assert others == {"actor_critic"}


def test_parts_begin_one_after_the_other():
    agent = make(model_after=2, actor_after=3)
    batch = batch_for(agent)
    for expected in (PARTS[:1], PARTS[:1], PARTS[:2], PARTS, PARTS):
        said = []
        changed = changed_parts(agent, lambda said=said: said.append(agent.update(batch)))
        assert changed == set(expected)
        assert {name.split("/")[0] for name in said[0].metrics} == set(expected)
        assert set(said[0].signals) == (
            {"model", "likelihood", "kl", "td"} if "model" in expected else set()
        )


def test_the_tokenizer_settles_when_the_world_model_begins():
    moved = []
    agent = make(settled=0.0, model_after=2, actor_after=9)
    for _ in range(4):
        moved.append("tokenizer" in changed_parts(agent, lambda: agent.update(batch_for(agent))))
    assert moved == [True, True, False, False]
    # The first step of Adam is as long as its learning rate.
    steps = []
    for settled in (1.0, 0.25):
        agent = make(settled=settled, model_after=0, tokenizer_lr=1e-3)
        before = agent.tokenizer.codebook.detach().clone()
        agent.update(batch_for(agent))
        steps.append((agent.tokenizer.codebook - before).abs().max().item())
    assert steps == pytest.approx([1e-3, 0.25e-3], rel=0.01)


def test_streams_are_as_long_as_the_settings_say():
    streams = make(frames=7, starts=5, burn_in=4).streams
    assert streams == {"frames": Stream(7, 1), "starts": Stream(5, 5)}


def test_signals_are_what_a_step_cost():
    agent = make(dropout=0.0, model_lr=1e-30)
    batch = batch_for(agent)
    is_first = torch.from_numpy(batch["is_first"])
    feedback = agent.update(batch)
    signals = {name: torch.from_numpy(signal) for name, signal in feedback.signals.items()}
    costs = agent.model.costs(
        agent._tokens(batch["image"]),
        torch.from_numpy(batch["action"]).argmax(-1),
        torch.from_numpy(np.sign(batch["reward"])).long() + 1,
        torch.from_numpy(batch["is_terminal"]).long(),
        is_first,
    )
    torch.testing.assert_close(signals["kl"], costs.tokens)
    torch.testing.assert_close(signals["likelihood"], costs.reward + costs.end)
    torch.testing.assert_close(signals["model"], signals["kl"] + signals["likelihood"])
    assert (signals["likelihood"][is_first] == 0).all()
    assert (signals["likelihood"][~is_first] > 0).all()


def test_td_follows_the_critic_through_the_window():
    agent = make(actor_after=10, discount=0.9)
    batch = batch_for(agent, ends=0.3)
    found = agent.update(batch).signals["td"]
    pictures = agent._draw(agent._tokens(batch["image"]))
    values = np.zeros((3, 8))
    with torch.no_grad():
        for row in range(3):
            for t in range(8):
                if batch["is_first"][row, t]:
                    memory = agent.actor_critic.start(1)
                opinion = agent.actor_critic(pictures[t, row : row + 1], memory)
                memory, values[row, t] = opinion.memory, opinion.value
    goes_on = 0.9 * (1 - batch["is_terminal"][:, 1:])
    expected = np.sign(batch["reward"][:, 1:]) + goes_on * values[:, 1:] - values[:, :-1]
    led = ~batch["is_first"][:, 1:]
    np.testing.assert_allclose(found[:, 1:][led], expected[led], rtol=1e-4, atol=1e-5)
    assert np.isnan(found[:, 0]).all()
    assert (found[:, 1:][~led] == 0).all()


def test_what_nobody_reads_is_left_out_and_decides_nothing():
    agent, other = make(), make()
    other.unread = {"td", "kl"}
    batch = batch_for(agent)
    for _ in range(2):
        found, without = agent.update(batch), other.update(batch)
        assert found.metrics == without.metrics
        assert set(without.signals) == {"model", "likelihood", "kl"}


def test_a_start_at_an_end_teaches_nothing():
    agent = make(starts=2)
    batch = batch_for(agent, ends=0)
    batch["starts/is_terminal"][:] = True
    batch["starts/is_terminal"][0, -1] = False
    metrics = make(starts=2).update(batch).metrics
    batch["starts/image"][1] = 255 - batch["starts/image"][1]
    same = make(starts=2).update(batch).metrics
    for name in ("actor_critic/actor", "actor_critic/critic"):
        assert same[name] == pytest.approx(metrics[name], rel=1e-5)
    batch["starts/is_terminal"][:] = True
    assert changed_parts(agent, lambda: agent.practise(batch)) == set()


def test_the_memory_is_burned_in_without_a_gradient_and_wiped_where_an_episode_begins():
    agent = make(actor_critic_lr=1e-30, entropy=0.0)
    batch = batch_for(agent, ends=0)

    def value(**fields):
        generator = agent.generator.get_state()
        metrics = agent.practise({**batch, **fields})
        agent.generator.set_state(generator)
        return metrics["actor_critic/value"].item()

    changed = batch["starts/image"].copy()
    changed[:, 0] = 255 - changed[:, 0]
    assert value(**{"starts/image": changed}) != value()
    begins = batch["starts/is_first"].copy()
    begins[:, -1] = True  # what was seen before is of another episode
    wiped = value(**{"starts/is_first": begins})
    assert value(**{"starts/is_first": begins, "starts/image": changed}) == wiped != value()


def test_actor_and_critic_learn_what_pays():
    """In dreams where action 2 is rewarded and nothing else is, it becomes the likeliest."""
    agent = make(starts=16, imagination=4, actor_critic_lr=1e-2, discount=0.5)
    batch = batch_for(agent)

    def step(dream, action, noise):
        reward = (action == 2).float()
        return dream_outcome(dream.tokens, reward, torch.zeros_like(reward))

    from curious_replay.agents import iris_model  # noqa: PLC0415

    dream_outcome = iris_model.Outcome
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dream, "step", step)
        for _ in range(60):
            metrics = agent.practise(batch)
    assert metrics["actor_critic/reward"] > 0.9
    assert metrics["actor_critic/value"] > 1.2  # of 2 at most


# Acting.


def act(agent, rows, explore, logits):
    with torch.no_grad():
        agent.actor_critic.actor.weight.zero_()
        agent.actor_critic.actor.bias.copy_(torch.tensor(logits))
    observation = {
        "image": np.zeros((rows, 32, 32, 3), np.uint8),
        "is_first": np.ones(rows, bool),
    }
    generator = torch.Generator().manual_seed(0)
    actions, _ = agent.act(agent.start(rows), observation, generator, explore)
    return actions.mean(0)


def test_some_actions_are_random_while_collecting():
    share = act(make(exploration=0.4), 4000, True, [20.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(share, [0.7, 0.1, 0.1, 0.1], atol=0.03)


def test_the_policy_is_sharper_where_it_is_evaluated():
    share = act(make(exploration=0.4, temperature=0.5), 4000, False, [1.0, 0.0, 0.0, 0.0])
    expected = F.softmax(torch.tensor([2.0, 0.0, 0.0, 0.0]), -1)
    np.testing.assert_allclose(share, expected, atol=0.03)


def test_the_actor_sees_what_the_tokenizer_draws():
    agent = make()
    seen = []
    agent.actor_critic.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    batch = make_batch(2, 1)
    observation = {name: array[:, 0] for name, array in batch.items()}
    agent.act(agent.start(2), observation, torch.Generator(), explore=True)
    assert torch.equal(seen[0], agent._draw(agent._tokens(batch["image"]))[0])


def test_a_film_may_be_longer_than_the_context():
    film = make(context=3).open_loop(make_batch(2, 12, ends=0), context=4)
    assert film.shape == (2, 12, 32, 32, 3)


# Errors.


@pytest.mark.parametrize(
    ("spaces", "message"),
    [
        (Spaces(6, discrete=False), "discrete actions only, and here they are 6 continuous"),
        (Spaces(4, discrete=True, image=None, vector=3), "sees an image and nothing beside it"),
        (Spaces(4, discrete=True, vector=3), "here 3 numbers are observed too"),
    ],
)
def test_worlds_that_it_cannot_live_in_are_refused(spaces, message):
    with pytest.raises(ValueError, match=message):
        Iris(DEBUG, spaces, 0)


def test_windows_longer_than_the_context_are_refused():
    agent = make(context=4)
    with pytest.raises(ValueError, match=r"windows of 8 steps are longer than .* 4"):
        agent.update(batch_for(agent))


@pytest.mark.parametrize("part", PARTS)
def test_a_part_whose_weights_are_not_finite_is_named(part):
    agent = make()
    batch = batch_for(agent)
    module = agent.actor_critic.critic if part == "actor_critic" else getattr(agent, part)
    with torch.no_grad():
        next(module.parameters()).fill_(torch.nan)
    with pytest.raises(NonFiniteError, match=f"^{part}/"):
        agent.update(batch)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_after": 5, "actor_after": 4}, r"--agent.actor-after must be at least .* \(5\)"),
        ({"vgg": "a"}, "--agent.vgg needs --agent.lpips"),
        ({"lpips": "a"}, "--agent.lpips needs --agent.vgg"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(DEBUG, **changes)


# The perceptual loss.


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """Files in the two formats, of random weights: paths of VGG16's and of LPIPS's."""
    folder = tmp_path_factory.mktemp("weights")
    generator = torch.Generator().manual_seed(0)
    vgg, inputs = {"classifier.0.weight": torch.zeros(3)}, 3
    for numbers, channels in STAGES:
        for number in numbers:
            scale = (2 / (9 * inputs)) ** 0.5
            weight = torch.randn(channels, inputs, 3, 3, generator=generator) * scale
            vgg[f"features.{number}.weight"] = weight
            vgg[f"features.{number}.bias"] = torch.zeros(channels)
            inputs = channels
    lpips = {f"lin{i}.model.1.weight": torch.ones(1, c, 1, 1) for i, (_, c) in enumerate(STAGES)}
    save_file(vgg, folder / "vgg.safetensors")
    torch.save(lpips, folder / "lpips.pth")
    return folder


def test_pictures_are_compared_by_how_they_look(weights):
    paths = (str(weights / "vgg.safetensors"), str(weights / "lpips.pth"))
    perceptual = PerceptualLoss(*paths, torch.device("cpu"))
    left = torch.rand(2, 32, 32, 3, generator=torch.Generator().manual_seed(0)) * 2 - 1
    assert perceptual(left, left) == 0
    near, far = perceptual(left, left * 0.9), perceptual(left, -left)
    assert 0 < near < far
    torch.testing.assert_close(perceptual(-left, left), far)
    moving = (left * 0.9).requires_grad_()
    (gradient,) = torch.autograd.grad(perceptual(left, moving), moving)
    assert gradient.isfinite().all() and gradient.abs().max() > 0
    black = torch.full_like(left, -1, requires_grad=True)
    (gradient,) = torch.autograd.grad(perceptual(left, black), black)
    assert gradient.isfinite().all()

    agent = make(vgg=paths[0], lpips=paths[1], model_after=9, actor_after=9)
    assert agent.update(batch_for(agent)).metrics["tokenizer/perceptual"] > 0
    assert agent.remarks["perceptual_loss"].startswith("LPIPS")
    assert agent.tensors().keys() == make().tensors().keys() | {
        name for name in agent.tensors() if name.startswith("tokenizer_adam")
    }  # the weights are no part of its state


def test_without_the_files_there_is_no_perceptual_loss():
    agent = make()
    assert agent.remarks["perceptual_loss"].startswith("none")
    metrics = agent.update(batch_for(agent)).metrics
    assert "tokenizer/perceptual" not in metrics
    parts = sum(metrics[f"tokenizer/{n}"] for n in ("reconstruction", "codebook", "commitment"))
    assert metrics["tokenizer/loss"] == pytest.approx(parts)


def test_the_error_of_pictures_is_absolute_or_squared():
    pictures = torch.rand(2, 32, 32, 3, generator=torch.Generator().manual_seed(0)) * 2 - 1
    for kind, power in (("absolute", 1), ("squared", 2)):
        agent = make(reconstruction=kind)
        with torch.no_grad():
            expected = (pictures - agent.tokenizer(pictures).picture).abs().pow(power).mean()
        found = agent.learn_to_see(pictures)["tokenizer/reconstruction"]
        torch.testing.assert_close(found, expected)


def test_files_that_do_not_fit_are_refused(weights, tmp_path):
    vgg, lpips = str(weights / "vgg.safetensors"), str(weights / "lpips.pth")

    def refused(message, vgg=vgg, lpips=lpips):
        with pytest.raises(ValueError, match=message):
            PerceptualLoss(str(vgg), str(lpips), torch.device("cpu"))

    refused("--agent.vgg: there is no file .*nowhere", vgg=tmp_path / "nowhere")
    refused("--agent.vgg: .* has no tensor features.0.weight", vgg=lpips)
    wrong = tmp_path / "wrong.safetensors"
    save_file({"lin0.model.1.weight": torch.zeros(1, 3, 1, 1)}, wrong)
    refused(r"lin0.model.1.weight .* must have the shape \[1, 64, 1, 1\], got \[1, 3, 1, 1\]",
            lpips=wrong)  # fmt: skip
    for name in ("text.pth", "text.safetensors"):
        (tmp_path / name).write_text("no weights")
        refused("--agent.lpips: .* is neither safetensors nor", lpips=tmp_path / name)
    torch.save(print, tmp_path / "code.pth")
    refused("--agent.lpips: .* is neither safetensors nor", lpips=tmp_path / "code.pth")
