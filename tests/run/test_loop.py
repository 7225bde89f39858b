import io
import json
import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from helpers.fake_agent import FakeAgent
from helpers.runs import config, lines, run
from rich.console import Console

from curious_replay import cli
from curious_replay.run import train
from curious_replay.run.loop.learner import Averages, Learner, TrainingFailedError
from curious_replay.run.loop.stop import Stop
from curious_replay.run.record.files import read_lines


def metrics(folder):
    return read_lines(folder / "metrics.jsonl")


def episodes(folder, mode="train"):
    return [line for line in read_lines(folder / "episodes.jsonl") if line["mode"] == mode]


def test_the_same_seed_gives_the_same_run(tmp_path):
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(config(seed=seed, train={"steps": 60}), tmp_path / name)
    assert lines(tmp_path / "a") == lines(tmp_path / "b")
    assert lines(tmp_path / "a") != lines(tmp_path / "c")


@pytest.mark.parametrize(("ratio", "num_envs"), [(4.0, 1), (20.0, 1), (3.0, 4)])
def test_the_train_ratio_is_exact(ratio, num_envs, tmp_path):
    settings = config(
        env={"num_envs": num_envs, "length": 1000}, train={"ratio": ratio, "log_every": num_envs}
    )
    run(settings, tmp_path)
    start = 20  # prefill
    for line in metrics(tmp_path):
        due = 1 + int((line["step"] - start) * ratio / 8) if line["step"] >= start else 0
        assert line["update"] == due


def test_nothing_is_learned_without_a_ratio_or_before_there_is_a_window(tmp_path):
    run(config(train={"ratio": 0.0, "steps": 40}), tmp_path / "none")
    assert metrics(tmp_path / "none")[-1]["update"] == 0
    settings = config(train={"prefill": 0, "steps": 10, "log_every": 1, "batch_length": 6})
    run(settings, tmp_path / "window")
    updates = [line["update"] for line in metrics(tmp_path / "window")]
    assert updates[:5] == [0] * 5
    assert updates[5] == 1


def test_episodes_shorter_than_a_window_are_told_of(tmp_path):
    out = io.StringIO()
    settings = config(
        env={"length": 5}, train={"steps": 60, "batch_length": 8}, replay={"cross_episodes": False}
    )
    train(settings, tmp_path / "short", console=Console(file=out, width=1000))
    told = "no episode has lasted for a window of 8 steps. Allow --replay.cross-episodes"
    assert out.getvalue().count(told) == 1
    assert metrics(tmp_path / "short")[-1]["update"] == 0
    train(replace(settings, replay=replace(settings.replay, cross_episodes=True)),
          tmp_path / "crossing", console=Console(file=out, width=1000))  # fmt: skip
    assert out.getvalue().count(told) == 1
    assert metrics(tmp_path / "crossing")[-1]["update"] > 0


def test_progress_is_shown_also_during_the_first_updates(tmp_path):
    out = io.StringIO()
    settings = config(train={"steps": 45, "pretrain": 30}, record={"print_seconds": 0.0})
    train(settings, tmp_path / "run", console=Console(file=out, width=1000))
    assert all(f"update {number} " in out.getvalue() for number in range(1, 31))


def test_metrics_are_averages_of_the_updates_between_two_lines(tmp_path, monkeypatch):
    seen = []
    real = FakeAgent.update

    def update(self, batch, unread):
        feedback = real(self, batch)
        seen.append(feedback.metrics["loss"])
        return feedback

    monkeypatch.setattr(FakeAgent, "update", update)
    run(config(train={"steps": 60}), tmp_path)
    last = 0
    for line in metrics(tmp_path):
        part = seen[last : line["update"]]
        assert line["loss"] == pytest.approx(np.mean(part))
        last = line["update"]


def test_metrics_tell_of_episodes_rewards_and_replay(tmp_path):
    run(config(env={"length": 7}, train={"steps": 60}), tmp_path)
    line = metrics(tmp_path)[1]
    ended = [e for e in episodes(tmp_path) if 20 < e["step"] <= 40]
    assert line["episode/return"] == np.mean([e["return"] for e in ended]) == 28
    assert line["replay/steps"] == 45  # 40 decisions and the ends of 5 episodes
    assert sum(m["env/reward"] for m in metrics(tmp_path)) == sum(
        m["log/step"] for m in metrics(tmp_path)
    )


def test_what_is_not_finite_is_left_out_of_averages_and_counted():
    averages, resumed = Averages(), Averages()
    averages.add({"a": 1.0, "b": float("nan")})
    averages.add({"a": 3.0, "b": float("inf")})
    resumed.set_state(averages.get_state())
    assert averages.take() == resumed.take() == {"a": 2.0, "nonfinite_values": 2}
    assert averages.take() == {}


UNDISTURBING = {
    "evaluation": {"eval": {"every": 15, "episodes": 2, "video": False}},
    "video of an evaluation": {"eval": {"every": 40, "video": True}},
    "video of predictions": {"record": {"video_every": 40}},
    "saving at every step": {"train": {"save_every": 1}},
    "saving by the clock": {"train": {"save_minutes": 1e-9, "save_every": 0}},
    "never saving": {"train": {"save_every": 0}},
    "TensorBoard": {"record": {"tensorboard": True}},
    "processes": {"env": {"processes": True}},
    "steps on disk": {"replay": {"storage": "disk"}},
}


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    run(config("toy/two-rooms", env={"length": 11}, train={"steps": 80}), folder)
    return folder


@pytest.mark.parametrize("name", UNDISTURBING)
def test_training_is_not_disturbed_by(name, plain_run, tmp_path):
    changes = {"env": {"length": 11}, "train": {"steps": 80}}
    for group, values in UNDISTURBING[name].items():
        changes[group] = {**changes.get(group, {}), **values}
    run(config("toy/two-rooms", **changes), tmp_path)
    assert lines(tmp_path)["metrics.jsonl"] == lines(plain_run)["metrics.jsonl"]
    assert episodes(tmp_path) == episodes(plain_run)


def test_evaluation_happens_in_the_present_phase(tmp_path):
    settings = config(
        "toy/two-rooms",
        env={"schedule": ((0, "empty"), (50, "object"))},
        train={"steps": 100},
        eval={"every": 20, "episodes": 2, "max_steps": 7},
    )
    run(settings, tmp_path)
    found = episodes(tmp_path, "eval")
    assert [e["step"] for e in found] == [20, 20, 40, 40, 60, 60, 80, 80, 100, 100]
    assert [e["phase"] for e in found] == ["empty"] * 4 + ["object"] * 6
    assert {e["length"] for e in found} == {7}
    assert len(list((tmp_path / "videos").glob("evaluation-*"))) == 5


def test_videos_show_what_the_model_predicts(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        FakeAgent, "open_loop", lambda self, batch, context: (
            asked.append((batch["image"].shape, context)) or batch["image"]
        ),
    )  # fmt: skip
    run(config(train={"steps": 60}, record={"video_every": 30, "video_rows": 1}), tmp_path)
    assert asked == [((1, 4, 32, 32, 3), 2)] * 2
    assert len(list((tmp_path / "videos").glob("open-loop-*"))) == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_stops_after_the_present_update(number, tmp_path, monkeypatch):
    settings = config(train={"steps": 60, "ratio": 40.0})  # 5 updates a step
    run(settings, tmp_path / "whole")
    real = Learner.update
    calls = []

    def update(self):
        real(self)
        calls.append(self.updates)
        if len(calls) == 33:
            os.kill(os.getpid(), number)

    with monkeypatch.context() as patch:
        patch.setattr(Learner, "update", update)
        outcome = run(settings, tmp_path / "stopped")
    assert (outcome.finished, outcome.signal) == (False, number)
    assert len(calls) == 33  # not those that were still owed in this round
    assert run(settings, tmp_path / "stopped", resume=True).finished
    assert lines(tmp_path / "stopped") == lines(tmp_path / "whole")


def test_a_signal_during_an_evaluation_puts_it_off(tmp_path, monkeypatch):
    settings = config(train={"steps": 60}, eval={"every": 20, "episodes": 3})
    run(settings, tmp_path / "whole")
    real = FakeAgent.act
    calls = []

    def act(self, state, observation, generator, explore):
        calls.append(explore)
        if calls.count(False) == 12:
            os.kill(os.getpid(), signal.SIGTERM)
        return real(self, state, observation, generator, explore)

    with monkeypatch.context() as patch:
        patch.setattr(FakeAgent, "act", act)
        assert run(settings, tmp_path / "stopped").step == 20
    assert calls.count(False) == 12
    run(settings, tmp_path / "stopped", resume=True)
    assert lines(tmp_path / "stopped") == lines(tmp_path / "whole")


def test_a_second_signal_is_not_waited_for(tmp_path):
    pid = os.fork()
    if pid == 0:
        with Stop():
            for _ in range(2):
                os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(10)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGTERM


def test_signals_are_as_before_afterwards():
    before = signal.getsignal(signal.SIGTERM)
    with Stop():
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before


def test_a_run_outside_of_the_main_thread_needs_no_signals(tmp_path):
    outcome = []
    thread = threading.Thread(
        target=lambda: outcome.append(run(config(train={"steps": 30}), tmp_path))
    )
    thread.start()
    thread.join()
    assert outcome[0].finished


def test_a_loss_that_is_not_finite_stops_with_the_batch_saved(tmp_path):
    with pytest.raises(TrainingFailedError, match="the reward loss is not finite") as failure:
        run(config(agent={"fail_at": 5}), tmp_path)
    path = tmp_path / "nonfinite-update-5.npz"
    assert str(path) in str(failure.value)
    with np.load(path) as batch:
        assert batch["image"].shape == (2, 4, 32, 32, 3)
        assert batch["ids"].shape == (2, 4)


def test_an_agents_own_mistake_is_shown_with_where_it_is(tmp_path, monkeypatch, capsys):
    def update(self, batch, unread):
        raise ValueError("operands could not be broadcast together")

    monkeypatch.setattr(FakeAgent, "update", update)
    options = ["--env", "toy/count", "--agent", "fake", "--scale", "debug"]
    assert cli.main(["train", *options, "--logdir", str(tmp_path / "run")]) == 1
    said = capsys.readouterr().err
    assert f'File "{__file__}"' in said and "operands could not be broadcast" in said
    assert "curious: training failed" in said and "--resume` goes on there" in said


def test_such_updates_can_be_skipped_up_to_a_limit(tmp_path):
    settings = config(agent={"fail_at": 5, "fail_for": 3}, train={"nonfinite": "skip"})
    assert run(settings, tmp_path / "a").finished
    assert metrics(tmp_path / "a")[-1]["skipped_updates"] == 3
    assert metrics(tmp_path / "a")[-1]["update"] == 88  # of the 91 that were due
    limited = config(
        agent={"fail_at": 5, "fail_for": 3}, train={"nonfinite": "skip", "nonfinite_limit": 2}
    )
    with pytest.raises(TrainingFailedError, match="3 updates in a row failed"):
        run(limited, tmp_path / "b")


def test_only_skipped_updates_in_a_row_count(tmp_path):
    settings = config(
        agent={"fail_at": 5, "fail_again_at": 20, "fail_for": 2},
        train={"nonfinite": "skip", "nonfinite_limit": 2},
    )
    assert run(settings, tmp_path).finished
    assert metrics(tmp_path)[-1]["skipped_updates"] == 4


def test_a_stopped_run_can_be_resumed_with_skipping(tmp_path):
    with pytest.raises(TrainingFailedError):
        run(config(agent={"fail_at": 40}), tmp_path)
    settings = config(agent={"fail_at": 40}, train={"nonfinite": "skip"})
    assert run(settings, tmp_path, resume=True).finished


def test_what_depends_on_the_clock_is_kept_apart(tmp_path):
    run(config(train={"steps": 40}), tmp_path)
    speed = read_lines(tmp_path / "speed.jsonl")
    assert len(speed) == len(metrics(tmp_path)) == 2
    assert speed[0]["steps_per_second"] > 0
    assert 0 < speed[1]["share/update"] <= 1


def test_the_run_folder_says_what_was_run(tmp_path):
    settings = config(train={"steps": 20})
    run(settings, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text()) == json.loads(
        json.dumps(settings.to_json())
    )
    assert json.loads((tmp_path / "meta.json").read_text())["seed"] == 0
