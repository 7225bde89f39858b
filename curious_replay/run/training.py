"""Begin or resume a run: look before the start, open everything, train, close everything."""

import os
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from signal import Signals
from typing import Any

import torch
from rich.console import Console

from curious_replay.agents.interface import Agent
from curious_replay.errors import UsageError
from curious_replay.extras import require
from curious_replay.replay import ReplayBuffer
from curious_replay.run import card, estimate, fitting, preflight
from curious_replay.run.loop import novelty
from curious_replay.run.loop.crew import Crew, gathered
from curious_replay.run.loop.seeds import seed_of
from curious_replay.run.loop.stop import Stop
from curious_replay.run.loop.trainer import Trainer, unread_signals
from curious_replay.run.record import snapshots
from curious_replay.run.record.checkpoint import Checkpoints
from curious_replay.run.record.checkpoint_files import Saved, keep
from curious_replay.run.record.files import write_json
from curious_replay.run.record.progress import Progress
from curious_replay.run.record.record import Record
from curious_replay.run.record.record_files import locked, read_meta, refuse_strange_files
from curious_replay.run.saved_run import make_agent, pick_device
from curious_replay.run.settings.allowed import CHANGEABLE, not_allowed
from curious_replay.run.settings.config import Config, load_config
from curious_replay.run.worlds.environments import EnvFacts, inspect_env
from curious_replay.run_folder import CHECKPOINTS, CONFIG

IN_TRAINING = "This happened in the middle of training: what was asked for had been found right."


@dataclass(frozen=True)
class Outcome:
    """How a call of `train` ended."""

    finished: bool
    signal: Signals | None
    step: int


def train(
    config: Config, folder: str | Path, *, resume: bool = False, console: Console | None = None
) -> Outcome:
    """Train as `config` says, in a run folder.

    With `resume` a run that is there goes on exactly where it was last saved, and one that is not
    there begins. Raises UsageError before anything starts if it cannot work.
    """
    folder, console = Path(folder), console or Console()
    if not (folder / CONFIG).exists():
        if Checkpoints(folder / CHECKPOINTS).all():
            raise UsageError(
                f"{folder} holds checkpoints but no config.json, so they are of another run: "
                "choose another --logdir"
            )
        return _train(config, folder, None, console)
    if not resume:
        raise UsageError(f"{folder} holds a run already: add --resume, or choose another --logdir")
    refuse_strange_files(folder)
    with locked(folder) as lock:  # before anything is read: another process may be saving just now
        for name, (before, now) in not_allowed(load_config(folder), config, CHANGEABLE).items():
            raise UsageError(
                f"{name} was {before} in this run and cannot become {now}: leave it out to resume, "
                "or choose another --logdir"
            )
        return _train(config, folder, lock, console)


def _train(config: Config, folder: Path, lock: FileIO | None, console: Console) -> Outcome:
    """Train in this process, or in all that torchrun started; see `_train_with`."""
    device = torch.device(pick_device(config.train.device))
    with card.advising(config, device, folder), gathered() as crew:
        return _train_with(crew, config, folder, lock, console)


def _train_with(
    crew: Crew, config: Config, folder: Path, lock: FileIO | None, console: Console
) -> Outcome:
    """Look before the start, then run; `lock` is that of a run which is there."""
    if config.record.wandb:
        require("--record.wandb", "wandb")
    prepare_torch(config)
    facts = inspect_env(config.choice.env, config.env)
    _check_changes(config, facts)
    agent = make_agent(config, facts.spaces)
    crew.check(agent, config)
    if config.train.graphs:
        agent.use_graphs(unread_signals(config))
    needed = preflight.needs(config, facts, agent)
    for line in (*needed.lines(), *novelty.forecast(config)):
        console.print(line, highlight=False)
    preflight.check(needed, folder, config.replay.storage)
    fitting.check(config, agent, crew.size, console, resumed=lock is not None)
    if config.choice.scale == "paper" and agent.device.type == "cpu" and lock is None:
        console.print(estimate.warning(config, facts.spaces), highlight=False, soft_wrap=True)
    with Stop() as stop:
        return _run(config, folder, lock, facts, agent, crew, stop, console)


def _run(
    config: Config,
    folder: Path,
    lock: FileIO | None,
    facts: EnvFacts,
    agent: Agent,
    crew: Crew,
    stop: Stop,
    console: Console,
) -> Outcome:
    checkpoints = Checkpoints(folder / CHECKPOINTS)
    saved, replay = _replay(config, folder, agent, checkpoints, console)
    before = load_config(folder).record.keep_at if lock else ()
    record = _record(config, folder, lock, saved, facts, agent, crew)
    checkpoints.tidy()
    title = f"{config.choice.env}  {config.choice.agent}  {config.choice.replay}"
    seconds = config.record.print_seconds
    with record, Progress(console, config.train.steps, seconds, title=title) as progress:
        record.note = progress.note
        trainer = Trainer(config, facts, agent, replay, record, checkpoints, progress, stop, crew)
        try:
            if saved is not None:
                with saved.put_to_use():
                    trainer.restore(saved)
                    asked = {*config.record.keep_at} - {*before}
                    passed = {step for step in asked if step <= trainer.keep.last}
                progress.note(f"resumed at step {saved.step:,}")
                if agent.crosses_devices(saved.agent):
                    progress.note(moved(saved, agent.device))
                keep(saved.path, passed & {saved.step})
                for step in sorted(passed - {saved.step}):
                    progress.note(
                        f"--record.keep-at {step}: the run has passed it, with no checkpoint there"
                    )
                if not facts.can_save:
                    progress.note(
                        f"{config.choice.env} has no get_state and set_state: it begins a new "
                        "episode, so the run is not exactly as if it had never stopped"
                    )
            crew.begin(agent, config)
            try:
                finished = trainer.run()
            except Exception as error:
                error.add_note(IN_TRAINING)
                raise
        finally:
            if told := trainer.told_restarts():
                progress.note(told)
            trainer.close()
    return Outcome(finished, stop.signal, trainer.counters.step)


def _record(
    config: Config,
    folder: Path,
    lock: FileIO | None,
    saved: Saved | None,
    facts: EnvFacts,
    agent: Agent,
    crew: Crew,
) -> Record:
    """Return the record of a new run, or that of one which is there, cut to where it was saved."""
    where = _where(config, agent, crew)
    shows = {"wandb": config.record.wandb, "tensorboard": config.record.tensorboard}
    if lock is None:
        record = Record.create(folder, config.to_json(), seed=config.seed, **shows)
        record.remember(
            camera=facts.camera,
            **where,
            schedule=facts.schedule,
            **agent.remarks,
        )
        return record
    _check_camera(folder, facts)
    position: Any = saved.state.get("record") if saved else {}
    begun, remarks = read_meta(folder), dict(where)
    if saved is not None:
        with saved.put_to_use():
            if agent.crosses_devices(saved.agent):
                remarks["inexact"] = moved(saved, agent.device)
    record = Record.open(folder, position=position, lock=lock, remarks=remarks, **shows)
    if "parent" in begun and not begun["resumes"]:
        record.remember(**where)  # a fork begins here, wherever its parent was
    snapshots.forget_after(folder, saved.step if saved else 0)
    write_json(folder / CONFIG, config.to_json())
    return record


def _where(config: Config, agent: Agent, crew: Crew) -> dict[str, Any]:
    """Return on what a run computes, and how, each time that it begins or goes on."""
    return {
        "threads": torch.get_num_threads(),
        "processes": crew.size,
        **card.remarks(agent.device),
        "precision": agent.precision,
        "graphs": config.train.graphs,
    }


def moved(saved: Saved, device: torch.device) -> str:
    """Return what it means that a checkpoint is of another kind of device than this."""
    before = saved.state.get("device", "not known")  # to older checkpoints
    return (
        f"the checkpoint was written on another kind of device ({before}) than this one "
        f"({card.named(device)}): random numbers begin anew, so the run is not exactly as if it "
        "had never stopped"
    )


def _replay(
    config: Config, folder: Path, agent: Agent, checkpoints: Checkpoints, console: Console
) -> tuple[Saved | None, ReplayBuffer]:
    """Return the last checkpoint and its replay, or None and an empty one."""
    directory = folder / "replay" if config.replay.storage == "disk" else None
    rule = config.replay.rule()
    found = checkpoints.resume(directory, rule, lambda text: console.print(text, soft_wrap=True))
    if found is not None:
        return found
    return None, ReplayBuffer(
        capacity=config.replay.capacity,
        length=max(config.train.batch_length, *(s.length for s in agent.streams.values()), 1),
        num_envs=config.env.num_envs,
        rule=rule,
        window=config.replay.window,
        cross_episodes=config.replay.cross_episodes,
        seed=seed_of(config.seed, "replay"),
        directory=directory,
        repeats=config.replay.repeats,
    )


def _check_changes(config: Config, facts: EnvFacts) -> None:
    """Refuse to wait for a change that never comes; some environments do not tell beforehand."""
    wanted, schedule = config.replay.clear_at_change, facts.schedule
    if schedule is not None and wanted > max(len(schedule) - 1, 0):
        raise UsageError(
            f"--replay.clear-at-change must be at most {max(len(schedule) - 1, 0)}, the number of "
            f"times that {config.choice.env} changes, got {wanted}; its schedule is "
            f"{[*map(list, schedule)]}"
        )


def _check_camera(folder: Path, facts: EnvFacts) -> None:
    """Refuse another camera than before: its pictures differ, so a run must not change it."""
    before = read_meta(folder).get("camera")
    if before is not None and facts.camera != before:
        raise UsageError(
            f"this run was seen through the camera {before}, here it would be {facts.camera}: "
            f"add --env.camera {before}"
        )


def prepare_torch(config: Config) -> None:
    """Fix what decides how sums are rounded, so that a run can be repeated bit for bit on a CPU."""
    # cuBLAS asks for it when it first computes; its sums have no fixed order otherwise.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    if config.train.threads:
        torch.set_num_threads(config.train.threads)
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Filling memory that is about to be written costs time and decides nothing.
    setattr(torch.utils.deterministic, "fill_uninitialized_memory", False)  # noqa: B010
