"""One run's settings, whole: saved as config.json and read back strictly."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from curious_replay import plugins
from curious_replay.bounds import Within
from curious_replay.errors import UsageError
from curious_replay.run.record.files import read_json
from curious_replay.run.record.meta import made_by_another
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.config_io import (
    Whole,
    from_json,
    option,
    to_json,
    with_new_names,
    within,
)
from curious_replay.run.settings.env_base import EnvConfig
from curious_replay.run.settings.env_config import FAMILIES, family_of
from curious_replay.run.settings.replay_config import REPLAYS, ReplayConfig
from curious_replay.run_folder import CONFIG
from curious_replay.untrusted import check

Scale = Literal["paper", "mini", "debug"]
PROBED = ("assay", "toy/two-rooms")
"""Families of environments that have test scenes for the world model."""
Device = Literal["auto", "cpu", "cuda"]
Precision = Literal["auto", "float32", "tf32", "bfloat16", "float16"]
SCALES: tuple[str, ...] = get_args(Scale)


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What a run is made of, by name; all other settings follow from it or are changed by hand."""

    env: str = "crafter"
    agent: str = "dreamerv3"
    replay: str = "curious"
    scale: str = "mini"

    def __post_init__(self) -> None:
        family_of(self.env)  # refuses unknown names
        for kind, name, known in (
            ("agent", self.agent, AGENTS),
            ("replay", self.replay, REPLAYS),
            ("scale", self.scale, SCALES),
        ):
            _known(kind, name, known)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How long and how often."""

    steps: Annotated[Whole, Within(1)] = 1_000_000
    """Decisions of the policy in the whole run, over all environments; frames are this times the
    action repeat."""
    ratio: Annotated[float, Within(0, 1000000.0)] = 512.0
    """Replayed steps per step: updates per step times the steps in a batch. 0: no training."""
    batch_size: Annotated[int, Within(1, 65_536)] = 16
    """Windows in a batch."""
    batch_length: Annotated[int, Within(2, 65_536)] = 64
    """Steps in a window."""
    prefill: Annotated[Whole, Within(0)] = 1100
    """Steps with random actions before the first update."""
    pretrain: Annotated[Whole, Within(1, 1_000_000)] = 1
    """Updates that are due at once when training begins; later ones follow from the ratio."""
    log_every: Annotated[Whole, Within(1)] = 1000
    """Steps between two lines of metrics."""
    save_every: Annotated[Whole, Within(0)] = 10_000
    """Steps between two checkpoints; 0: by time only."""
    save_minutes: Annotated[float, Within(0)] = 15.0
    """Minutes after which a checkpoint is made in any case; 0: by steps only."""
    nonfinite: Literal["stop", "skip"] = "stop"
    """What to do when a loss is not finite: stop with the batch saved, or skip the update."""
    nonfinite_limit: Annotated[int, Within(1)] = 10
    """Skipped updates in a row after which the run stops all the same."""
    device: Device = "auto"
    """Where the agent computes; auto: on a graphics card if there is one."""
    precision: Precision = "auto"
    """Arithmetic of the networks; auto: float32 on the CPU, on a graphics card bfloat16 where it
    has that, else tf32 or, on old ones, float32."""
    graphs: bool = False
    """Let a graphics card repeat a recorded update (CUDA graphs) instead of launching each kernel
    of it; nobody has tried it on a card yet."""
    threads: Annotated[int, Within(0, 1024)] = 0
    """Threads of the agent on the CPU; 0: as many as cores. Exact repeats need the same number."""

    def __post_init__(self) -> None:
        within("train", self)
        for name in ("nonfinite", "device", "precision"):
            _known(f"train.{name}", getattr(self, name), get_args(_annotation(self, name)))


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """Evaluation: episodes in the present phase with a policy that does not explore."""

    every: Annotated[Whole, Within(0)] = 0
    """Steps between two evaluations; 0: none."""
    episodes: Annotated[int, Within(1, 100_000)] = 1
    """Episodes of one evaluation."""
    max_steps: Annotated[Whole, Within(1)] = 1000
    """Steps after which an episode is cut, in every world."""
    video: bool = True
    """Record the first episode."""

    def __post_init__(self) -> None:
        within("eval", self)


@dataclass(frozen=True, kw_only=True)
class RecordConfig:
    """What is written beside metrics and episodes."""

    tensorboard: bool = True
    """Write TensorBoard events."""
    wandb: bool = False
    """Also send metrics to Weights & Biases; needs the extra wandb."""
    video_every: Annotated[Whole, Within(0)] = 0
    """Steps between two videos of what the model predicts; 0: none."""
    video_context: Annotated[int, Within(1)] = 5
    """Steps the model sees before it predicts."""
    video_rows: Annotated[int, Within(1, 64)] = 3
    """Windows in a video, one below the other."""
    probe_every: Annotated[Whole, Within(0)] = 0
    """Steps between two tests of the world model on fixed scenes, which the object-interaction
    assay and toy/two-rooms have; 0: none."""
    snapshot_every: Annotated[Whole, Within(0)] = 0
    """Steps between two snapshots of priorities and visits, which the report's tables of replay
    come from; 0: none."""
    snapshot_steps: Annotated[Whole, Within(1)] = 100_000
    """Stored steps that a snapshot keeps at most, evenly spread."""
    print_seconds: Annotated[float, Within(0)] = 10.0
    """Seconds between two lines where the output is no terminal."""
    keep_at: tuple[Whole, ...] = ()
    """Steps whose checkpoints are kept for good, to be forked from. Agents then also report signals
    that their own rule does not need and that cost time ("td" of IRIS), for those of forks."""

    def __post_init__(self) -> None:
        within("record", self)
        if min(self.keep_at, default=1) < 1:
            raise UsageError(f"--record.keep-at must be at least 1, got {min(self.keep_at)}")


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that was chosen for a run."""

    choice: Choice
    seed: int
    env: EnvConfig
    agent: Any
    """The agent's own settings: `AGENTS[choice.agent].config`."""
    replay: ReplayConfig
    train: TrainConfig
    eval: EvalConfig = field(default_factory=EvalConfig)
    record: RecordConfig = field(default_factory=RecordConfig)

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 2**31:
            raise UsageError(f"--seed must be from 0 to {2**31 - 1}, got {self.seed}")
        AGENTS[self.choice.agent].check(self.agent, self.train.batch_length)
        least = self.train.batch_length * self.env.num_envs
        if self.replay.capacity < least:
            raise UsageError(
                f"--replay.capacity must be at least {least}: a window of "
                f"{self.train.batch_length} steps for each environment, got {self.replay.capacity}"
            )
        if self.record.probe_every and family_of(self.choice.env) not in PROBED:
            raise UsageError(
                "--record.probe-every needs the test scenes of the object-interaction assay or of "
                f"toy/two-rooms; {self.choice.env} has none, so it must be 0"
            )
        last = max(self.record.keep_at, default=0)
        if last > self.train.steps:
            raise UsageError(
                f"--record.keep-at must be at most --train.steps ({self.train.steps}), got {last}"
            )
        for name in ("video_every", "probe_every"):
            if getattr(self.record, name) and not AGENTS[self.choice.agent].predicts_images:
                raise UsageError(
                    f"{option(f'record.{name}')} needs an agent that predicts images; "
                    f"{self.choice.agent} does not, so it must be 0"
                )
        if self.record.video_every and self.record.video_context >= self.train.batch_length:
            raise UsageError(
                f"--record.video-context must be below --train.batch-length "
                f"({self.train.batch_length}), got {self.record.video_context}"
            )

    @property
    def updates_per_step(self) -> tuple[float, int]:
        """Train ratio and steps in a batch: their quotient, kept apart to be exact."""
        return self.train.ratio, self.train.batch_size * self.train.batch_length

    def updates(self, begin: int = 0) -> int:
        """Return how often the agent learns in the run, or in its part from step `begin` on."""
        ratio, batch = self.updates_per_step

        def until(step: int) -> int:
            return int(max(step - self.train.prefill, 0) * ratio / batch)

        pretrain = self.train.pretrain if begin <= self.train.prefill else 0
        return pretrain + until(self.train.steps) - until(begin)

    def to_json(self) -> dict[str, Any]:
        """Return all settings as JSON values."""
        groups = {name: to_json(getattr(self, name)) for name in vars(self) if name != "seed"}
        return {**groups, "seed": self.seed}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Config":
        """Read back what `to_json` gave; anything unknown or missing is an error that names it."""
        groups = ("choice", "seed", "env", "agent", "replay", "train", "eval", "record")
        for name in groups:
            if name not in values:
                raise UsageError(f"the group of settings {name!r} is missing")
        for name in values:
            if name not in groups:
                raise UsageError(f"unknown setting {name}; there are {', '.join(groups)}")
        choice: Choice = from_json(Choice, values["choice"], "choice")
        if not isinstance(values["seed"], int):
            raise UsageError(f"--seed must be a whole number, got {values['seed']!r}")
        kinds: dict[str, type] = {
            "env": FAMILIES[family_of(choice.env)],
            "agent": AGENTS[choice.agent].config,
            "replay": REPLAYS[choice.replay],
            "train": TrainConfig,
            "eval": EvalConfig,
            "record": RecordConfig,
        }
        values = with_new_names(values, kinds)
        read = {name: from_json(kind, values[name], name) for name, kind in kinds.items()}
        return cls(choice=choice, seed=values["seed"], **read)


def load_config(folder: str | Path) -> Config:
    """Load the settings of a run."""
    path = Path(folder) / CONFIG
    if not path.is_file():
        raise UsageError(f"{folder} holds no run: it has no config.json")
    values = read_json(path)
    try:
        check(values, dict, "the file")
        return Config.from_json(values)
    except UsageError as error:
        why = made_by_another(Path(folder)) + plugins.hint(Path(folder))
        raise UsageError(f"{path}: {error}{why}") from error


def differences(old: Config, new: Config) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ, by the name of their option: (old, new)."""
    before, after = _flat(old.to_json()), _flat(new.to_json())
    return {
        option(name.removeprefix("choice.")): (before.get(name), after.get(name))
        for name in before | after
        if before.get(name) != after.get(name)
    }


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = list(value) if isinstance(value, tuple) else value
    return flat


def _annotation(settings: Any, name: str) -> Any:
    return type(settings).__dataclass_fields__[name].type


def _known(path: str, name: str, known: Iterable[str]) -> None:
    known = tuple(known)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        guess = f"; did you mean {near[0]}?" if near else ""
        raise UsageError(f"{option(path)} must be one of {', '.join(known)}, got {name!r}{guess}")
