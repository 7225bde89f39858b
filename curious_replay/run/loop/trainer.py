"""The training loop.

Every round begins with what is due (metrics, evaluation, video, checkpoint), then the environments
take a step while the agent takes the updates that the train ratio asks for. A run can be saved
between any two updates; `owed` are those of the round that are still to come.
"""

import time
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from typing import Any

import torch

from curious_replay.agents.interface import Agent
from curious_replay.replay import ReplayBuffer
from curious_replay.run import card
from curious_replay.run.loop.changes import Changes
from curious_replay.run.loop.clock import Every, Ratio, Reached
from curious_replay.run.loop.crew import Crew
from curious_replay.run.loop.driver import Counters, Driver
from curious_replay.run.loop.evaluation import Evaluation
from curious_replay.run.loop.learner import Averages, Learner
from curious_replay.run.loop.novelty import Novelty
from curious_replay.run.loop.probe import Probe, scenes_of
from curious_replay.run.loop.seeds import seed_of
from curious_replay.run.loop.stop import Stop
from curious_replay.run.loop.stopwatch import Stopwatch
from curious_replay.run.record import snapshots
from curious_replay.run.record.checkpoint import Checkpoints
from curious_replay.run.record.checkpoint_files import Saved
from curious_replay.run.record.progress import Progress
from curious_replay.run.record.record import Record
from curious_replay.run.record.video import open_loop_video
from curious_replay.run.settings.config import Config
from curious_replay.run.worlds.environments import EnvFacts, make_envs

SIGNALS = frozenset({"model", "likelihood", "kl", "td"})
"""What agents may report of a step."""
# Of replay's numbers: the first depends on how it was loaded, the last is not of an interval.
UNRECORDED = ("bytes", "capacity", "distinct")


def unread_signals(config: Config) -> Collection[str]:
    """Return the signals that nobody needs in a run of these settings."""
    # Whatever rule a fork may have, it finds its signals.
    return () if config.record.keep_at else SIGNALS.difference(config.replay.rule().signals)


class Trainer:
    """A run in progress."""

    def __init__(
        self,
        config: Config,
        facts: EnvFacts,
        agent: Agent,
        replay: ReplayBuffer,
        record: Record,
        checkpoints: Checkpoints,
        progress: Progress,
        stop: Stop,
        crew: Crew,
    ) -> None:
        self.config, self.facts, self.agent, self.replay = config, facts, agent, replay
        self.record, self.progress, self.stop = record, progress, stop
        self.counters = Counters()
        self.checkpoints = checkpoints
        self.owed = 0
        self._changed = True  # since the last save
        self._told_of_short_episodes = False
        self.ratio = Ratio(*config.updates_per_step, first=config.train.pretrain)
        self.every = {
            "log": Every(config.train.log_every, last=0),
            "evaluate": Every(config.eval.every, last=0),
            "video": Every(config.record.video_every if facts.spaces.image else 0, last=0),
            "probe": Every(config.record.probe_every, last=0),
            "snapshot": Every(config.record.snapshot_every, last=0),
            "save": Every(config.train.save_every, last=0),
        }
        self.keep = Reached(config.record.keep_at)
        self.episodes = Averages()
        self.changes = Changes(config.env.num_envs)
        self.novelty = Novelty(config)
        self._opened = ExitStack()
        envs = make_envs(config.choice.env, config.env, config.env.num_envs)
        self._opened.callback(envs.close)
        self.driver = Driver(
            envs, facts, agent, replay, self.counters, self._episode,
            seed=config.seed, prefill=config.train.prefill,
            frames_per_step=config.env.frames_per_step,
        )  # fmt: skip
        self.learner = Learner(
            agent, replay, config.train.batch_size, config.train.batch_length,
            skip_nonfinite=config.train.nonfinite == "skip",
            nonfinite_limit=config.train.nonfinite_limit, folder=record.folder,
            replayed=self.changes.replayed, crew=crew,
            unread=unread_signals(config),
        )  # fmt: skip
        self._opened.callback(self.learner.close)
        self.evaluation = Evaluation(agent, config, facts)
        self._opened.callback(self.evaluation.close)
        self.probe: Probe | None = None  # made when it is first due
        self._saved_at = time.monotonic()
        self.watch = Stopwatch(self.counters, ("policy", "update", "wait", "save"))

    def run(self) -> bool:
        """Train to the end, or until asked to stop; returns whether the end was reached."""
        self._save()  # before the first frame: from here on there is always one to resume from
        try:
            return self._rounds()
        except torch.OutOfMemoryError:
            # What had no room is still owed, or still due: it can be made with other settings.
            if self.driver.waiting:
                self.driver.receive()
            self._save()
            raise

    def _rounds(self) -> bool:
        while True:
            if not self.owed:
                self._do_what_is_due()
            finished = self.counters.step >= self.config.train.steps and not self.owed
            if self.stop or finished:
                self._save()
                return finished
            if not self.owed:
                self._send()
            while self.owed and not self.stop:
                self._update()
            if self.driver.waiting:
                self.watch.time("wait", self.driver.receive)
            self.progress.show(asdict(self.counters), {})

    def told_restarts(self) -> str:
        """Return how often environments failed and were restarted since the start; "" if never."""
        each = self.driver.envs.restarts
        total = int(each.sum()) + self.evaluation.restarts
        if not total:
            return ""
        worst = int(each.argmax())
        return (
            f"environments were restarted {total} times, number {worst} {each[worst]} of them: "
            "`worker_restarted` in episodes.jsonl says when. --env.max-restarts sets a limit"
        )

    def close(self) -> None:
        """End all environments and threads."""
        self._opened.close()

    def restore(self, saved: Saved) -> None:
        """Go on from a checkpoint whose replay this run was made with."""
        state = saved.state
        for name, value in state["counters"].items():
            setattr(self.counters, name, value)
        self.owed = state["owed"]
        self.ratio.set_state(state["ratio"])
        for name, last in state["every"].items():
            self.every[name].last = last
        self.keep.last = state.get("keep", self.counters.step)  # older checkpoints do not tell
        self.episodes.set_state(state["episodes"])
        self.changes.set_state(state["changes"])
        self.agent.load_tensors(saved.agent)
        self.driver.load_tensors(saved.policy)
        self.driver.set_state(state["driver"])
        self.learner.set_state(state["learner"])
        self.watch.restart()
        self._changed = False

    def _do_what_is_due(self) -> None:
        """Do what is due: metrics, evaluation, video, snapshot, checkpoint.

        What a stop prevents stays due.
        """
        step = self.counters.step
        acts = {
            "log": self._log,
            "evaluate": self._evaluate,
            "video": self._video,
            "probe": self._test_model,
            "snapshot": self._snapshot,
        }
        for name, act in acts.items():
            if not self.stop and self.every[name].due(step) and act():
                self.every[name].done(step)
                self._changed = True
        minutes = (time.monotonic() - self._saved_at) / 60
        due = self.every["save"].due(step)
        if due:
            self.every["save"].done(step)
        if self.stop:
            return
        if self.keep.last < step:
            self._changed = True  # also where a stop at the last step prevented it
        kept = self.keep(step)
        if due or kept or 0 < self.config.train.save_minutes <= minutes:
            self._save(kept)

    def _send(self) -> None:
        self._changed = True
        self.watch.time("policy", partial(self.driver.send, self._clear_if_the_world_changed))
        if self.counters.step < self.config.train.prefill:
            return
        if self.replay.ready:
            self.owed = self.ratio(self.counters.step)
        else:
            self._tell_if_episodes_are_too_short()

    def _clear_if_the_world_changed(self) -> None:
        """Clear replay where it is wanted, before the first step that differs is stored."""
        change = self.changes.see(self.driver.transition.phases)
        if 0 < change == self.config.replay.clear_at_change:
            self.replay.clear()
            self.learner.forget_next_batch()  # it was drawn from what is gone

    def _tell_if_episodes_are_too_short(self) -> None:
        """Tell so once, when windows could have come together twice over."""
        length = self.config.train.batch_length
        enough = min(2 * length * self.config.env.num_envs, self.config.replay.capacity)
        if self._told_of_short_episodes or len(self.replay) < enough:
            return
        self._told_of_short_episodes = True
        self.progress.note(
            f"nothing is learned: no episode has lasted for a window of {length} steps. Allow "
            "--replay.cross-episodes, or choose a shorter --train.batch-length"
        )

    def _update(self) -> None:
        self.watch.time("update", self.learner.update)
        self.owed -= 1
        self.counters.update = self.learner.updates
        self.progress.show(asdict(self.counters), {})  # the first step may owe thousands

    def _episode(self, values: dict[str, Any]) -> None:
        self.record.episode(asdict(self.counters), {"mode": "train", **values})
        shown = {"return": values["return"], "length": values["length"]}
        self.episodes.add(shown)
        self.progress.show(
            asdict(self.counters), {f"episode/{name}": value for name, value in shown.items()}
        )

    def _log(self) -> bool:
        values = self.learner.averages.take()
        values |= {f"episode/{name}": value for name, value in self.episodes.take().items()}
        values |= self.driver.stats.take_interval()
        values |= self.changes.take_share()
        stats = self.replay.stats()
        values |= {f"replay/{n}": value for n, value in stats.items() if n not in UNRECORDED}
        if advice := self.novelty.see(stats):
            self.progress.note(advice)
        if self.learner.skipped:
            values["skipped_updates"] = self.learner.skipped
        counters = asdict(self.counters)
        self.record.metrics(counters, values)
        self.progress.show(counters, values | card.shown(self.agent.device))
        memory = {"replay_bytes": stats["bytes"], **card.memory(self.agent.device)}
        self.record.speed(counters, {**self.watch.read(), **memory})
        return True

    def _evaluate(self) -> bool:
        settings, counters = self.config.eval, asdict(self.counters)
        played = self.evaluation.run(
            settings.episodes,
            seed=seed_of(self.config.seed, "evaluation", self.counters.step),
            phase=self.driver.phase,
            video=settings.video,
            stop=lambda: bool(self.stop),
        )
        if played is None:
            return False
        for episode in played:
            self.record.episode(counters, {"mode": "eval", **episode.values})
        mean = sum(episode.values["return"] for episode in played) / len(played)
        self.progress.show(counters, {"evaluation/return": mean})
        if played[0].pictures:
            video = played[0].video(self.config.env.frames_per_step)
            self.record.video("evaluation", counters, video, self.facts.fps)
        return True

    def _video(self) -> bool:
        """Record a video of what the model predicts for some windows of the batch that is next.

        It returns True, or False if nothing was learned yet.
        """
        batch = self.learner.next_batch
        if batch is None:
            return False  # nothing was learned yet: later
        settings = self.config.record
        rows = {name: value[: settings.video_rows] for name, value in batch.items()}
        model = self.agent.open_loop(rows, settings.video_context)
        video = open_loop_video(rows["image"], model, settings.video_context)
        self.record.video("open-loop", asdict(self.counters), video, self.facts.fps)
        return True

    def _test_model(self) -> bool:
        """Record the errors of the world model on the test scenes; return True."""
        if self.probe is None:
            self.probe = Probe(scenes_of(self.config.env, self.facts.camera))
        for line in self.probe.lines(self.agent):
            self.record.probe(asdict(self.counters), line)
        return True

    def _snapshot(self) -> bool:
        """Write visits and priorities of what is stored, for analyses; return True."""
        most = self.config.record.snapshot_steps
        counters = asdict(self.counters)
        taken = snapshots.take(self.replay, self.driver.phases, counters, most)
        snapshots.write(self.record.folder, taken)
        return True

    def _save(self, kept: tuple[int, ...] = ()) -> None:
        """Save everything, unless that is done; changes nothing of what comes next.

        A checkpoint that is `kept`, as the one of these steps, is there for good.
        """
        if not self._changed and not kept:
            return
        state = {
            "counters": asdict(self.counters),
            "owed": self.owed,
            "ratio": self.ratio.get_state(),
            "every": {name: every.last for name, every in self.every.items()},
            "keep": self.keep.last,
            "episodes": self.episodes.get_state(),
            "changes": self.changes.get_state(),
            "driver": self.driver.get_state(),
            "learner": self.learner.get_state(),
            "record": self.record.position(),
            "device": card.named(self.agent.device),
        }
        parts = (self.agent.tensors(), self.driver.tensors(), self.replay)
        save = partial(self.checkpoints.save, self.counters.step, state, *parts, kept=kept)
        self.watch.time("save", save)
        self._changed = False
        self._saved_at = time.monotonic()
