"""A run folder, read back: its settings and the agent as it was last saved."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from curious_replay.agents.interface import Agent
from curious_replay.agents.spaces import Spaces
from curious_replay.errors import UsageError
from curious_replay.run import precision
from curious_replay.run.loop.evaluation import Episode, Evaluation
from curious_replay.run.loop.seeds import seed_of
from curious_replay.run.record.checkpoint import Checkpoints
from curious_replay.run.record.encode import write_video
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.config import Config, Device, load_config
from curious_replay.run.settings.env_config import SimulatedConfig
from curious_replay.run.worlds.environments import EnvFacts, check_renders, inspect_env
from curious_replay.run_folder import CHECKPOINTS


@dataclass(frozen=True)
class SavedRun:
    """An agent and what it was trained with."""

    folder: Path
    config: Config
    agent: Agent
    facts: EnvFacts
    phase: str
    """The phase its environment was in."""
    step: int
    frame: int


def pick_device(name: str, option: str = "--train.device") -> str:
    """Return the device to use, "auto" resolved; `option` is where the name was given."""
    if name != "auto":
        if name == "cuda" and not torch.cuda.is_available():
            raise UsageError(f"{option} cuda: torch finds no graphics card here; use cpu")
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def make_agent(config: Config, spaces: Spaces) -> Agent:
    """Make a new agent for an environment with these spaces."""
    make = AGENTS[config.choice.agent].make
    seed = seed_of(config.seed, "agent")
    agent = make(config.agent, spaces, seed, pick_device(config.train.device))
    precision.apply(agent, config.train.precision)
    return agent


def load_agent(
    folder: str | Path, device: Device = "auto", note: Callable[[str], None] = warnings.warn
) -> SavedRun:
    """Load the agent of a run as it was last saved."""
    pick_device(device, "--device")  # before anything is read, and by the name it has here
    config = load_config(folder)
    config = replace(config, train=replace(config.train, device=device))
    saved = Checkpoints(Path(folder) / CHECKPOINTS).newest(note)
    facts = inspect_env(config.choice.env, config.env)
    agent = make_agent(config, facts.spaces)
    with saved.put_to_use():
        agent.load_tensors(saved.agent)
        frame = int(saved.state["counters"]["frame"])
        phase = str(saved.state["driver"]["transition"]["phases"][0])
    return SavedRun(Path(folder), config, agent, facts, phase, saved.step, frame)


def evaluate(
    run: SavedRun,
    episodes: int = 10,
    *,
    seed: int = 0,
    phase: str | None = None,
    episode_frames: int | None = None,
    video: str | Path | None = None,
) -> list[Episode]:
    """Play episodes in a phase (by default that of the save); the first one may be recorded.

    A `video` shows what the agent sees, or, where that is no picture, what the environment renders.
    `episode_frames`: how long they are, by default as long as those the agent was trained on.
    """
    if episodes < 1:
        raise UsageError(f"episodes must be at least 1, got {episodes}")
    if video is not None and Path(video).suffix != ".mp4":
        raise UsageError(f"video must end in .mp4, got {str(video)!r}")
    render = video is not None and run.facts.spaces.image is None
    if seed < 0:
        raise UsageError(f"seed must be a whole number from 0 on, got {seed}")
    if phase is not None and not run.facts.has_phases:
        raise UsageError(
            f"phase {phase!r}: {run.config.choice.env} has no phases that it can be put into; "
            "leave it out"
        )
    if phase is not None and run.facts.phases and phase not in run.facts.phases:
        raise UsageError(f"phase must be one of {', '.join(run.facts.phases)}, got {phase!r}")
    config = run.config
    if episode_frames is not None:
        config = _with_episodes_of(episode_frames, config)
    if render:
        check_renders(config.choice.env, config.env)
    evaluation = Evaluation(run.agent, config, run.facts, render)
    try:
        played = evaluation.run(
            episodes, seed=seed, phase=phase or run.phase, video=video is not None
        )
    finally:
        evaluation.close()
    assert played is not None
    if video is not None:
        pictures = played[0].video(run.config.env.frames_per_step)
        Path(video).parent.mkdir(parents=True, exist_ok=True)
        write_video(pictures, Path(video).with_suffix(""), run.facts.fps)
    return played


def _with_episodes_of(frames: int, config: Config) -> Config:
    """Return the settings, with episodes of so many frames."""
    if not isinstance(config.env, SimulatedConfig):
        raise UsageError(f"episode_frames: episodes of {config.choice.env} end by themselves")
    if frames < 1:
        raise UsageError(f"episode_frames must be at least 1, got {frames}")
    steps = -(-frames // config.env.frames_per_step)
    limit = replace(config.eval, max_steps=max(config.eval.max_steps, steps))
    return replace(config, env=replace(config.env, episode_frames=frames), eval=limit)
