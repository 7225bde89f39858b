"""The contestants of bench/update.py: agents that make one update whenever asked to.

    python bench/update_peers.py sheeprl tiny
    python bench/update_peers.py small mirror

Each runs in a process of its own, with an interpreter of its own, as what they need may differ. It
reads requests from its standard input, a word each, and answers each with a line of JSON. The first
line says how many parameters there are, or why there is no contestant.
"""

import argparse
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from importlib import metadata
from inspect import signature
from types import ModuleType
from typing import Any, TextIO

import numpy as np

Request = Callable[[], dict[str, Any]]

ACTIONS, PIXELS, HORIZON = 17, 64, 15


def random_batch(
    windows: int, length: int, actions: int = ACTIONS, pixels: int = PIXELS
) -> dict[str, np.ndarray]:
    """Make steps [windows, length, ...] as replay gives them; every window lies in one episode."""
    rng = np.random.default_rng(0)
    shape = (windows, length)
    is_first = np.zeros(shape, bool)
    is_first[:, 0] = True
    return {
        "image": rng.integers(0, 256, (*shape, pixels, pixels, 3), np.uint8),
        "action": np.eye(actions, dtype=np.float32)[rng.integers(0, actions, shape)],
        "reward": rng.standard_normal(shape, np.float32),
        "is_first": is_first,
        "is_last": np.zeros(shape, bool),
        "is_terminal": np.zeros(shape, bool),
    }


def timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Request:
    """Answer with the seconds that `work` takes by a clock."""

    def request() -> dict[str, Any]:
        start = clock()
        work()
        return {"seconds": clock() - start}

    return request


def count(**modules: Any) -> dict[str, int]:
    """Count the parameters of each module."""
    return {name: sum(p.numel() for p in m.parameters()) for name, m in modules.items()}


def settings_of(agent: str) -> ModuleType:
    """Return the module of an agent's settings, in this checkout or where older ones have it."""
    try:
        return importlib.import_module(f"curious_replay.agents.configs.{agent}")
    except ModuleNotFoundError:
        return importlib.import_module(f"curious_replay.agents.{agent}_config")


class Curious:
    """Ours."""

    def __init__(self, size: Any, batch: dict[str, np.ndarray]) -> None:
        from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config  # noqa: PLC0415
        from curious_replay.agents.dreamer_v3 import DreamerV3  # noqa: PLC0415
        from curious_replay.agents.spaces import Spaces  # noqa: PLC0415

        self.batch = batch
        config = DreamerV3Config(size=size, imagination=HORIZON)
        self.agent = DreamerV3(config, Spaces(ACTIONS, discrete=True), seed=0)
        behaviour = self.agent.behaviour
        self.parameters = count(
            model=self.agent.model, actor=behaviour.actor, critic=behaviour.critic
        )
        self.requests: dict[str, Request] = {
            "update": timed(self.update),
            "flops": self.flops,
            "matmul": self.matmul,
            "profile": self.profile,
        }

    def update(self) -> None:
        """Make one update."""
        self.agent.update(self.batch)

    def flops(self) -> dict[str, Any]:
        """Count the arithmetic of one update: matrix products and convolutions."""
        from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415

        with FlopCounterMode(display=False) as counter:
            self.update()
        return {"flops": counter.get_total_flops()}

    def matmul(self) -> dict[str, Any]:
        """Multiply large matrices: what this machine can reach."""
        import torch  # noqa: PLC0415

        width, repeats = 2048, 10
        left, right = torch.randn(2, width, width)
        start = time.perf_counter()
        for _ in range(repeats):
            left @ right
        return {"flops": 2 * width**3 * repeats / (time.perf_counter() - start)}

    def profile(self) -> dict[str, Any]:
        """Measure what part of an update each part of the agent takes, with its backward pass."""
        from torch.profiler import ProfilerActivity, profile  # noqa: PLC0415

        model, behaviour = self.agent.model, self.agent.behaviour
        for owner, method, name in [
            (self.agent, "load", "loading"),
            (model, "believe", "recurrent core"),
            (model, "embed", "encoder"),
            (model, "picture", "decoder"),
            (model, "likelihood_losses", "losses"),
            (model, "kl_loss", "losses"),
            (model.reward_head, "forward", "heads"),
            (model.continue_head, "forward", "heads"),
            (behaviour, "imagine", "imagination"),
            (behaviour.actor, "forward", "actor"),
            (behaviour.critic, "forward", "critic"),
            (behaviour.slow_critic, "forward", "critic"),
            *((optimiser, "step", "optimisers") for optimiser in self.agent.optimisers.values()),
        ]:
            label(owner, method, name)
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            seconds = timed(self.update)()["seconds"]
        return {"shares": shares(profiler.events(), seconds)}


class Small:
    """Ours, as small as in the miniatures, of whichever checkout is first on Python's path.

    mirror  DreamerV3 with discrete actions, 8 imagined steps
    assay   Plan2Explore on DreamerV3 that only explores, if it can, with continuous actions: 10
            imagined steps, 5 members
    """

    WINDOWS, LENGTH = 8, 16

    def __init__(self, name: str, pixels: int, starts: float) -> None:
        spaces = importlib.import_module("curious_replay.agents.spaces")
        v3 = settings_of("dreamer_v3")
        shape: dict[str, Any] = {"size": "micro", "imagination": 8 if name == "mirror" else 10}
        if starts != 1:
            shape["starts"] = starts
        dreamer = self._settings(v3.DreamerV3Config, **shape)
        discrete, actions = (True, 4) if name == "mirror" else (False, 2)
        seen = spaces.Spaces(actions, discrete=discrete, image=(pixels, pixels))
        if name == "mirror":
            agents = importlib.import_module("curious_replay.agents.dreamer_v3")
            self.agent = agents.DreamerV3(dreamer, seen, seed=0)
        else:
            p2e = settings_of("plan2explore")
            agents = importlib.import_module("curious_replay.agents.plan2explore")
            ensemble = replace(p2e.V3_ENSEMBLE, members=5)
            only = {"task_actor": "off"}
            if "task_actor" not in p2e.Plan2ExploreV3Config.__dataclass_fields__:
                only = {}  # older checkouts train the task's actor whether it is needed or not
            config = self._settings(
                p2e.Plan2ExploreV3Config, dreamer=dreamer, ensemble=ensemble, **only
            )
            self.agent = agents.Plan2Explore(config, seen, seed=0)
        # As with most rules; older checkouts have it as an attribute.
        self.unread: dict[str, Any] = {"unread": {"td"}}
        if "unread" not in signature(self.agent.update).parameters:
            self.agent.unread = self.unread.pop("unread")
        self.batch = random_batch(self.WINDOWS, self.LENGTH, actions, pixels)
        self.parameters = count(agent=self.agent)
        # With one thread, time of the processor: what else runs on the machine disturbs it less.
        self.requests: dict[str, Request] = {"update": timed(self.update, time.process_time)}

    @staticmethod
    def _settings(kind: Any, **values: Any) -> Any:
        """Make settings; a checkout that does not know one of them is no contestant."""
        for name in values:
            if name not in kind.__dataclass_fields__:
                raise ImportError(f"{kind.__name__} of this checkout has no {name}")
        return kind(**values)

    def update(self) -> None:
        """Make one update."""
        self.agent.update(self.batch, **self.unread)


LABEL = "part: "
BACKWARD = "autograd::engine::evaluate_function"


def label(owner: Any, method: str, name: str) -> None:
    """Let a profiler see when `owner` is in `method`."""
    from torch.profiler import record_function  # noqa: PLC0415

    inner = getattr(owner, method)

    def labelled(*arguments: Any, **options: Any) -> Any:
        with record_function(LABEL + name):
            return inner(*arguments, **options)

    setattr(owner, method, labelled)


def shares(events: Iterable[Any], seconds: float) -> dict[str, float]:
    """Share of `seconds` by label; a backward step counts where its forward step was made.

    Both have the same number, which operations that make no step of their own share with the next
    one that does.
    """
    events = sorted(events, key=lambda event: event.time_range.start)
    made_in: dict[int, str] = {}

    def part(event: Any) -> str:
        while event is not None:
            if event.name.startswith(LABEL):
                return str(event.name.removeprefix(LABEL))
            if event.name.startswith(BACKWARD):
                return made_in.get(event.sequence_nr, "other")
            event = event.cpu_parent
        return "other"

    spent: dict[str, float] = {}
    for event in events:
        name = part(event)
        spent[name] = spent.get(name, 0.0) + event.self_cpu_time_total * 1e-6
        if event.sequence_nr >= 0 and not event.name.startswith(BACKWARD):
            made_in[event.sequence_nr] = name
    spent["other"] = seconds - sum(time for name, time in spent.items() if name != "other")
    parts = sorted(spent.items(), key=lambda item: -item[1])
    return {name: time / seconds for name, time in parts}


SHEEPRL = (
    "exp=dreamer_v3",
    "algo=dreamer_v3_XS",
    "env=dummy",
    "metric.log_level=0",
    "algo.compile.mode=null",
    f"algo.horizon={HORIZON}",
)
SHEEPRL_SIZES: dict[str, tuple[str, ...]] = {
    "XS": (),
    "tiny": (
        "algo.world_model.discrete_size=16",
        "algo.world_model.encoder.cnn_channels_multiplier=16",
    ),
}


class Sheeprl:
    """sheeprl's DreamerV3, by its own `train`; the batch is on hand as its buffer would give it."""

    def __init__(
        self, size: str, batch: dict[str, np.ndarray], *, compiled: bool, threads: int
    ) -> None:
        v3 = importlib.import_module("sheeprl.algos.dreamer_v3.dreamer_v3")
        if size not in SHEEPRL_SIZES:
            raise ImportError(f"sheeprl has no settings for the size {size!r}")
        hydra = importlib.import_module("hydra")
        spaces = importlib.import_module("gymnasium").spaces
        torch = importlib.import_module("torch")
        settings = [*SHEEPRL, *SHEEPRL_SIZES[size], f"num_threads={threads}"]
        self._config = self._read([*settings, f"algo.compile.enabled={compiled}"])
        config = self._config
        importlib.import_module("sheeprl.utils.metric").MetricAggregator.disabled = True
        importlib.import_module("sheeprl.utils.timer").timer.disabled = True
        torch.set_float32_matmul_precision(config.float32_matmul_precision)
        torch.distributions.Distribution.set_default_validate_args(
            config.distribution.validate_args
        )
        self._fabric = hydra.utils.instantiate(config.fabric, _convert_="all")
        self._fabric.launch()
        self._fabric.seed_everything(0)
        image = spaces.Box(0, 255, (3, PIXELS, PIXELS), np.uint8)
        self._networks = v3.build_agent(
            self._fabric, (ACTIONS,), False, config, spaces.Dict({"rgb": image})
        )[:4]
        trained = zip(("world_model", "actor", "critic"), self._networks, strict=False)
        self._optimisers = self._fabric.setup_optimizers(
            *(
                hydra.utils.instantiate(
                    config.algo[name].optimizer, params=network.parameters(), _convert_="all"
                )
                for name, network in trained
            )
        )
        moments = config.algo.actor.moments
        self._moments = v3.Moments(
            moments.decay, moments.max, moments.percentile.low, moments.percentile.high
        )
        self._train = v3.train
        fields = {
            "rgb": batch["image"].transpose(0, 1, 4, 2, 3),
            "actions": batch["action"],
            "rewards": batch["reward"][..., None],
            "is_first": batch["is_first"][..., None],
            "terminated": batch["is_terminal"][..., None],
            "truncated": batch["is_last"][..., None],
        }
        self._batch = {
            name: torch.from_numpy(np.ascontiguousarray(field.swapaxes(0, 1)))
            for name, field in fields.items()
        }
        model, actor, critic, _ = self._networks
        self.parameters = count(model=model, actor=actor, critic=critic)
        self.requests: dict[str, Request] = {"update": timed(self.update)}

    @staticmethod
    def _read(overrides: list[str]) -> Any:
        """The library's own configuration files, with changes."""
        hydra = importlib.import_module("hydra")
        omegaconf = importlib.import_module("omegaconf")
        with hydra.initialize_config_module("sheeprl.configs", version_base="1.3"):
            config = hydra.compose("config", overrides)
        with suppress(ValueError):  # it is there already
            omegaconf.OmegaConf.register_new_resolver("now", lambda _: "now")
        plain = omegaconf.OmegaConf.to_container(config, resolve=True)
        return importlib.import_module("sheeprl.utils.utils").dotdict(plain)

    def update(self) -> None:
        """Make one update, as the loop of its `main` does."""
        *_, critic, slow = self._networks
        tau = self._config.algo.critic.tau
        for new, old in zip(critic.module.parameters(), slow.parameters(), strict=True):
            old.data.copy_(tau * new.data + (1 - tau) * old.data)
        batch = {name: field.float() for name, field in self._batch.items()}
        self._train(
            self._fabric, *self._networks, *self._optimisers, batch, None, self._config, False,
            (ACTIONS,), self._moments,
        )  # fmt: skip


def make(options: argparse.Namespace) -> Curious | Small | Sheeprl:
    """Make the contestant that is asked for."""
    if options.contestant == "small":
        return Small(options.size, options.pixels, options.starts)
    batch = random_batch(options.windows, options.length)
    if options.contestant == "curious":
        return Curious(options.size, batch)
    compiled = options.contestant.endswith("compiled")
    return Sheeprl(options.size, batch, compiled=compiled, threads=options.threads)


def main() -> None:
    """Answer requests until there are no more."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    choices = ["curious", "small", "sheeprl", "sheeprl compiled"]
    parser.add_argument("contestant", choices=choices)
    parser.add_argument("size")
    parser.add_argument("--windows", type=int, default=16)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--pixels", type=int, default=32, help="of small")
    parser.add_argument("--starts", type=float, default=1.0, help="of small")
    options = parser.parse_args()
    if options.contestant in ("curious", "small"):
        with suppress(ImportError):  # an earlier checkout, which prepares itself
            importlib.import_module("curious_replay.host").prepare()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # whatever else is printed is no answer

    try:
        import torch  # noqa: PLC0415

        torch.set_num_threads(options.threads)
        contestant = make(options)
    except ImportError as error:
        return say(answers, {"missing": str(error)})
    versions = {}
    for package in ("torch", "sheeprl"):
        with suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    say(answers, {"parameters": contestant.parameters, "versions": versions})
    for line in sys.stdin:
        say(answers, contestant.requests[line.strip()]())
    return None


def say(answers: TextIO, answer: dict[str, Any]) -> None:
    """Write one line."""
    print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
