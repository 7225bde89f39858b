"""IRIS: an agent that learns inside the dreams of a transformer.

Top to bottom: the course of an update, then its three parts. A tokenizer learns to write pictures
as a few tokens. A transformer learns to continue the text of tokens and actions (`iris_model.py`).
Actor and critic learn in what it dreams, and only ever see pictures as the tokenizer draws them.
Each part learns from windows of its own, and the later ones begin when the earlier ones know
something.
"""

from collections.abc import Collection, Mapping
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from curious_replay.agents.blocks.actor import OneHotPolicy
from curious_replay.agents.blocks.maths import exactly, to_float32
from curious_replay.agents.blocks.optim import Optimiser
from curious_replay.agents.blocks.returns import lambda_returns, td_errors
from curious_replay.agents.blocks.tokens.perceptual import PerceptualLoss
from curious_replay.agents.blocks.tokens.tokenizer import PLACES, Tokenizer, codebook_losses
from curious_replay.agents.blocks.tokens.transformer import seeded
from curious_replay.agents.configs.iris import SIZES, IrisConfig, Size
from curious_replay.agents.feedback import FiniteCheck, UpdateReport, to_numpy
from curious_replay.agents.interface import (
    Arrays,
    Feedback,
    NonFiniteError,
    PolicyState,
    Stream,
)
from curious_replay.agents.iris_model import Dream, TokenModel, reward_class
from curious_replay.agents.spaces import Spaces
from curious_replay.agents.together import together
from curious_replay.agents.updates import DeviceAgent, Fields
from curious_replay.errors import UsageError

Metrics = dict[str, Tensor]
PICTURES, STARTS = "pictures", "starts"  # streams beside the batch, which is the world model's


class Iris(DeviceAgent):
    """Tokenizer, world model, and an actor and critic with a memory."""

    def __init__(self, config: IrisConfig, spaces: Spaces, seed: int, device: str = "cpu") -> None:
        super().__init__(spaces, seed, device)
        if not spaces.discrete:
            raise UsageError(
                f"IRIS knows discrete actions only, and here they are {spaces.actions} continuous "
                "ones: choose another environment, or the agent dreamerv3"
            )
        if spaces.image is None or spaces.vector:
            raise UsageError(
                f"IRIS sees an image and nothing beside it, and here {spaces.vector} numbers are "
                "observed too: choose another environment, or the agent dreamerv3"
            )
        self.config = config
        size, pixels = SIZES[config.size], spaces.image[0]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.tokenizer = Tokenizer(
                pixels, size.channels, size.groups, size.blocks, size.codes, size.code
            )
            self.model = TokenModel(size, spaces.actions, config.context)
            self.actor_critic = ActorCritic(size, pixels, spaces.actions)
        self.to(self.device)
        # It stays with the host, which decides by it what is to be done.
        self.updates = nn.Buffer(torch.zeros((), dtype=torch.int64))
        self.finite = FiniteCheck(self.device)
        self.perceptual: PerceptualLoss | None = None
        if config.vgg:
            self.perceptual = PerceptualLoss(config.vgg, config.lpips, self.device)
        rest = (config.eps, config.clip)
        self.optimisers = {
            "tokenizer_adam": Optimiser(self.tokenizer, config.tokenizer_lr, *rest),
            "model_adam": Optimiser(
                self.model,
                config.model_lr,
                *rest,
                decay=config.model_lr * config.decay,
                decayed=self.model.linear_weights,
            ),
            "actor_critic_adam": Optimiser(self.actor_critic, config.actor_critic_lr, *rest),
        }

    @property
    def streams(self) -> Mapping[str, Stream]:
        """Pictures for the tokenizer, and what actor and critic see before each dream."""
        config = self.config
        return {
            PICTURES: Stream(config.pictures, 1),
            STARTS: Stream(config.starts, config.burn_in + 1),
        }

    @property
    def remarks(self) -> dict[str, str]:
        """Whether pictures are compared by how they look."""
        if self.perceptual is None:
            error = f"{self.config.reconstruction} error and codebook only"
            return {"perceptual_loss": f"none: the tokenizer learns from {error}"}
        return {"perceptual_loss": f"LPIPS, {self.config.vgg} and {self.config.lpips}"}

    @property
    def fields(self) -> Collection[str]:
        """See `DeviceAgent.fields`."""
        seen = [f"{stream}image" for stream in ("", f"{PICTURES}/", f"{STARTS}/")]
        ends = [f"{STARTS}/is_first", f"{STARTS}/is_terminal"]
        return [*seen, "action", "reward", "is_first", "is_terminal", *ends]

    def update(self, batch: Arrays, unread: Collection[str] = ()) -> Feedback:
        """Train the tokenizer, then what else has begun to learn: world model, actor and critic.

        There are no signals before the world model learns.
        """
        fine = bool(np.isfinite(batch["reward"]).all())
        if not together().agree(fine):  # no class is that of another reward
            raise NonFiniteError("model/reward")
        model_learns, _ = self.structure
        with seeded(self.generator) if model_learns else nullcontext():
            feedback = super().update(batch, unread)
        self.updates.add_(1)
        return feedback

    @property
    def structure(self) -> tuple[bool, bool]:
        """Whether the world model learns, and whether actor and critic do."""
        settings = self.config.model_after, self.config.actor_after
        model, actor = (bool(self.updates >= after) for after in settings)
        return model, actor

    def learn(self, batch: Fields, unread: Collection[str], known: Arrays | None) -> UpdateReport:
        """See `update`."""
        self.finite = FiniteCheck(self.device)
        model_learns, actor_learns = self.structure
        reward = self._load(batch["reward"])
        metrics = self.learn_to_see(self._pictures(batch[f"{PICTURES}/image"]).flatten(0, 1))
        signals: dict[str, Tensor] = {}
        with self.autocast():
            if model_learns:
                signals, more = self.train_world_model(batch, reward, unread)
                metrics |= more
            if actor_learns:
                metrics |= self.train_actor_critic(batch)
        return self.finite.report(signals, metrics)

    def check_sharing(self, processes: int, windows: int, length: int) -> None:
        """See `Agent.check_sharing`: each process drops out (dropout) by numbers of its own."""

    def learn_to_see(self, pictures: Tensor) -> Metrics:
        """Let the tokenizer rebuild pictures [N, H, W, 3]."""
        settled = self.config.settled if self.structure[0] else 1.0
        self.optimisers["tokenizer_adam"].lr = self.config.tokenizer_lr * settled
        with self.autocast():
            seen = self.tokenizer(pictures)
        codebook, commitment = codebook_losses(seen.codes, seen.quantised)
        wrong = pictures - seen.picture
        absolute = self.config.reconstruction == "absolute"
        losses = {
            "reconstruction": (wrong.abs() if absolute else wrong.square()).mean(),
            "codebook": codebook,
            "commitment": self.config.commitment * commitment,
        }
        if self.perceptual is not None:
            losses["perceptual"] = self.perceptual(pictures, seen.picture)
        used = pictures.new_zeros(len(self.tokenizer.codebook))
        used.index_fill_(0, seen.tokens.flatten(), 1.0)
        return {
            **self._fit("tokenizer", losses),
            "tokenizer/codes_used": together().mean(used).ceil().sum(),
        }

    def train_world_model(
        self, batch: Fields, reward: Tensor, unread: Collection[str] = ()
    ) -> tuple[dict[str, Tensor], Metrics]:
        """Let the world model predict windows [B, T]; returns signals [T, B] and metrics."""
        config = self.config
        if reward.shape[1] > config.context:
            raise ValueError(
                f"windows of {reward.shape[1]} steps are longer than the transformer's context, "
                f"{config.context}"
            )
        is_first, terminal = (self._load(batch[n]).bool() for n in ("is_first", "is_terminal"))
        tokens = self._tokens(batch["image"])
        actions = self._load(batch["action"]).argmax(-1)
        costs = self.model.costs(
            tokens, actions, reward_class(reward), terminal.long(), is_first, config.dropout
        )
        self.finite.check("model", costs._asdict())
        loss = costs.loss(is_first)
        norm = self.finite.step("model", self.optimisers["model_adam"], loss)
        likelihood, kl = costs.reward + costs.end, costs.tokens
        signals = {"model": likelihood + kl, "likelihood": likelihood, "kl": kl}
        signals = {name: signal.detach().T for name, signal in signals.items()}
        if "td" not in unread:  # pictures have to be drawn for it
            signals["td"] = self._td_error(tokens, reward, is_first, terminal)
        metrics = {f"model/{name}": cost.mean() for name, cost in costs._asdict().items()}
        metrics |= {"model/loss": loss, "model/gradient": norm}
        return signals, {name: value.detach() for name, value in metrics.items()}

    @torch.no_grad()
    def _td_error(
        self, tokens: Tensor, reward: Tensor, is_first: Tensor, terminal: Tensor
    ) -> Tensor:
        """Return the temporal-difference error [T, B] on arriving at each step; see `td_errors`.

        Of rewards as the critic knows them: -1, 0 or 1.
        """
        memory = self.actor_critic.start(len(reward))
        values = []
        for picture, first in zip(self._draw(tokens), is_first.T, strict=True):
            opinion = self.actor_critic(picture, memory.wiped(first))
            memory = opinion.memory
            values.append(opinion.value)
        discounts = self.config.discount * (1 - terminal.T.float())
        return td_errors(reward.sign().T[1:], discounts, torch.stack(values), is_first.T)

    def train_actor_critic(self, batch: Fields) -> Metrics:
        """Let actor and critic see some steps, dream on from the last of them, and learn."""
        config, learner = self.config, self.actor_critic
        tokens = self._tokens(batch[f"{STARTS}/image"])
        is_first = self._load(batch[f"{STARTS}/is_first"]).bool()
        rows, states = len(tokens), config.imagination
        seen = self._draw(tokens)
        memory = learner.start(rows)
        with torch.no_grad():
            for picture, first in zip(seen[:-1], is_first.T[:-1], strict=True):
                memory = learner(picture, memory.wiped(first)).memory
        memory = memory.wiped(is_first[:, -1])

        dream, picture = Dream(self.model, tokens[:, -1]), seen[-1]
        action_noise, noise = (self._rand(states, rows, size) for size in (1, PLACES + 2))
        logits, actions, values, rewards, ends = [], [], [], [], []
        for t in range(states):
            opinion = learner(picture, memory)
            memory = opinion.memory
            logits.append(opinion.logits)
            values.append(opinion.value)
            actions.append(OneHotPolicy(opinion.logits, 0.0).sample(action_noise[t]))
            if t < states - 1:
                outcome = dream.step(actions[-1].argmax(-1), noise[t])
                rewards.append(outcome.reward)
                ends.append(outcome.ends)
                picture = self.tokenizer.draw(outcome.tokens)

        value = torch.stack(values)
        discounts = config.discount * (1 - torch.stack(ends))
        returns = lambda_returns(
            torch.stack(rewards), discounts, value.detach(), config.return_lambda
        )
        # Nothing can be learned from going on after an end.
        cont = 1 - self._load(batch[f"{STARTS}/is_terminal"])[:, -1]
        weights = (cont / together().counted(cont.sum())).expand_as(returns) / len(returns)
        policy = OneHotPolicy(torch.stack(logits[:-1]), 0.0)
        advantage = returns - value[:-1].detach()
        gain = policy.log_probability(torch.stack(actions[:-1])) * advantage
        losses = {
            "actor": -(weights * (gain + config.entropy * policy.entropy)).sum(),
            "critic": (weights * (value[:-1] - returns).square()).sum(),
        }
        metrics = {
            "actor_critic/entropy": policy.entropy.mean().detach(),
            "actor_critic/return": returns.mean(),
            "actor_critic/reward": torch.stack(rewards).mean(),
            "actor_critic/value": value.mean().detach(),
        }
        return {**self._fit("actor_critic", losses), **metrics}

    def _fit(self, part: str, losses: Metrics) -> Metrics:
        """Reduce the sum of a part's losses; returns them all."""
        loss = torch.stack([*losses.values()]).sum()
        self.finite.check(part, losses)
        norm = self.finite.step(part, self.optimisers[f"{part}_adam"], loss)
        shown = {**losses, "loss": loss, "gradient": norm}
        return {f"{part}/{name}": value.detach() for name, value in shown.items()}

    def start(self, num_envs: int) -> PolicyState:
        """Return the first memory of actor and critic, [num_envs, ...]."""
        return self.actor_critic.start(num_envs)._asdict()

    @torch.no_grad()
    def act(
        self, state: PolicyState, observation: Arrays, generator: torch.Generator, explore: bool
    ) -> tuple[np.ndarray, PolicyState]:
        """See `Agent.act`: drawn with some random actions, or from a sharper policy."""
        memory = Memory(**state).wiped(torch.from_numpy(observation["is_first"]).to(self.device))
        with self.autocast():
            tokens = self.tokenizer.read(self._pictures(observation["image"]))
            opinion = self.actor_critic(self.tokenizer.draw(tokens), memory)
        if explore:
            policy = OneHotPolicy(opinion.logits, self.config.exploration)
        else:
            policy = OneHotPolicy(opinion.logits / self.config.temperature, 0.0)
        noise = torch.rand(len(tokens), 1, generator=generator, device=generator.device)
        action = policy.sample(noise.to(self.device))
        return to_numpy(action), opinion.memory._asdict()

    @torch.no_grad()
    def open_loop(self, batch: Arrays, context: int) -> np.ndarray:
        """See `Agent.open_loop`: what was seen as tokens say it, then the likeliest dream."""
        tokens = self._tokens(batch["image"][:, :context])
        actions = self._load(batch["action"]).argmax(-1)
        dream = Dream(self.model, tokens[:, -1])
        ahead = [dream.step(action, None).tokens for action in actions.T[context - 1 : -1]]
        tokens = torch.cat([tokens, *(each.unsqueeze(1) for each in ahead)], 1)
        pictures = (self._draw(tokens).transpose(0, 1) + 1) * 127.5
        return to_numpy(pictures.round()).astype(np.uint8)

    def _tokens(self, image: np.ndarray | Tensor) -> Tensor:
        """Return the tokens int64 [B, T, K] of images uint8 [B, T, H, W, 3]."""
        tokens = self.tokenizer.read(self._pictures(image).flatten(0, 1))
        return tokens.view(*image.shape[:2], -1)

    def _draw(self, tokens: Tensor) -> Tensor:
        """Return tokens [B, T, K] as pictures, time first [T, B, H, W, 3], from -1 to 1."""
        pictures = self.tokenizer.draw(tokens.transpose(0, 1).flatten(0, 1))
        return pictures.view(tokens.shape[1], len(tokens), *pictures.shape[1:])

    def _pictures(self, image: np.ndarray | Tensor) -> Tensor:
        return self._load(image) / 127.5 - 1

    def _rand(self, steps: int, windows: int, size: int) -> Tensor:
        """Draw uniform numbers [steps, windows, size]."""
        shape = {"size": size, "windows": windows}
        return together().draw(torch.rand, steps, windows, **shape, generator=self.generator)


class Memory(NamedTuple):
    """What actor and critic remember of N worlds."""

    hidden: Tensor  # [N, units]
    cell: Tensor  # [N, units]

    def wiped(self, rows: Tensor) -> "Memory":
        """Return the memory with nothing in it where `rows`, bool [N], is true."""
        return Memory(*(part.masked_fill(rows.unsqueeze(1), 0.0) for part in self))


class Opinion(NamedTuple):
    """What they say of N pictures."""

    logits: Tensor  # [N, A], of actions
    value: Tensor  # [N]
    memory: Memory


class ActorCritic(nn.Module):
    """Convolutions, a memory (LSTM), and a linear actor and critic."""

    def __init__(self, size: Size, pixels: int, actions: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList()
        inputs = 3
        for channels in size.eye:
            self.convs.append(nn.Conv2d(inputs, channels, 3, padding=1))
            inputs = channels
        side = pixels >> len(size.eye)
        self.units = size.units
        self.memory = nn.LSTMCell(side * side * inputs, size.units)
        self.actor = nn.Linear(size.units, actions)
        self.critic = nn.Linear(size.units, 1)

    def start(self, rows: int) -> Memory:
        """Return the memory of an actor and critic that have seen nothing."""
        nothing = self.critic.weight.new_zeros(rows, self.units).detach()
        return Memory(nothing, nothing.clone())

    def forward(self, picture: Tensor, memory: Memory) -> Opinion:
        """Look at pictures [N, H, W, 3] from -1 to 1."""
        x = picture.permute(0, 3, 1, 2)
        for conv in self.convs:
            x = F.relu(F.max_pool2d(conv(x), 2))
        with exactly(x):  # what is remembered would be rounded again at every step
            memory = Memory(*self.memory(to_float32(x.flatten(1)), tuple(memory)))
            return Opinion(self.actor(memory.hidden), self.critic(memory.hidden)[:, 0], memory)
