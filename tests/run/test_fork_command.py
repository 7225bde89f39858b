"""Every option of `curious fork`."""

import errno
import os
import re
from pathlib import Path

import pytest
from helpers.runs import config, lines, run
from test_train_command import VALUES, options_of

from curious_replay import cli
from curious_replay.commands.fork import parse
from curious_replay.run import Choice, load_config, preset
from curious_replay.run.record.files import read_json, write_json
from curious_replay.run.settings.allowed import FORKABLE, not_allowed
from curious_replay.run.settings.config import differences
from curious_replay.run.settings.replay_config import REPLAYS, ReplayConfig

GROUPS = ("env", "agent", "replay", "train", "eval", "record")


@pytest.fixture(scope="module")
def parent(tmp_path_factory):
    folder = tmp_path_factory.mktemp("command") / "parent"
    made = config(
        "toy/two-rooms", env={"length": 11}, train={"steps": 60}, record={"keep_at": (30,)},
        replay={"alpha": 0.6, "capacity": 140},
    )  # fmt: skip
    run(made, folder)
    return folder


def understood(parent, *options):
    return parse([str(parent), "--logdir", "new", *options])


def test_what_is_not_given_is_as_in_the_parent(parent):
    command = understood(parent)
    assert command.config == load_config(parent)
    assert (command.run, command.logdir, command.at) == (parent, Path("new"), None)
    assert understood(parent, "--at", "1e3").at == 1000


def test_another_rule_comes_with_its_preset_and_what_is_stored_stays(parent):
    before = load_config(parent)
    for name in [each for each in REPLAYS if each != "curious"]:
        made = understood(parent, "--replay", name).config
        own = preset(Choice(env="toy/two-rooms", agent="fake", replay=name, scale="debug")).replay
        for field in vars(made.replay):
            stored = field in ReplayConfig.__dataclass_fields__
            assert getattr(made.replay, field) == getattr(before.replay if stored else own, field)
        assert made.replay.capacity == 140
        assert {each.split(".")[0] for each in differences(before, made)} == {"--replay"}
    assert understood(parent, "--replay", "adversarial").config.replay.alpha == 0.7
    assert understood(parent, "--replay=curious", "--replay.beta", "0.5").config.replay.alpha == 0.6


def test_every_option_changes_what_it_says_and_nothing_else(parent):
    before = load_config(parent)
    names = [each for group in GROUPS for each in options_of(getattr(before, group), group)]
    values = {**VALUES, "--agent.lr": "0.5", "--agent.fail-at": "3", "--agent.fail-again-at": "3",
              "--agent.fail-for": "3", "--record.keep-at": "40 50"}  # fmt: skip
    allowed = set()
    for name in ["--seed", *names]:
        if name == "--record.probe-every":  # not in this world, as in `curious train`
            continue
        given = values[name].split()
        after = understood(parent, name, *given).config
        changes = differences(before, after)
        positive = re.sub(r"\.no-(?=[^.]*$)", ".", name)
        assert set(changes) <= {positive}
        assert changes or name != positive or not given
        if changes and not not_allowed(before, after, FORKABLE):
            allowed.add(positive)
    assert {each for each in allowed if each.startswith(("--replay", "--agent", "--env"))} == {
        "--replay.storage", "--replay.clear-at-change", "--replay.repeats", "--replay.alpha",
        "--replay.eps", "--replay.p-max", "--replay.signal", "--replay.dialect", "--replay.c",
        "--replay.beta", "--agent.lr", "--env.processes", "--env.max-restarts",
    }  # fmt: skip
    assert {each for each in allowed if each.startswith("--train")} == {
        "--train.steps", "--train.ratio", "--train.log-every", "--train.save-every",
        "--train.save-minutes", "--train.nonfinite", "--train.nonfinite-limit", "--train.device",
        "--train.threads", "--train.precision", "--train.graphs",
    }  # fmt: skip


def test_learning_rates_of_all_agents_may_differ():
    found = {}
    for agent in (
        "dreamerv3",
        "dreamerv2",
        "dreamerpro",
        "plan2explore",
        "plan2explore-v3",
        "iris",
    ):
        before = preset(Choice(env="crafter", agent=agent, scale="debug"))
        flat = options_of(before.agent, "agent")
        found[agent] = [each for each in flat if re.fullmatch(r"--agent\.(.*[.-])?lr", each)]
    assert found["dreamerv3"] == ["--agent.model-lr", "--agent.actor-lr", "--agent.critic-lr"]
    assert found["iris"] == [
        "--agent.tokenizer-lr", "--agent.model-lr", "--agent.actor-critic-lr"
    ]  # fmt: skip
    assert {"--agent.dreamer.model-lr", "--agent.ensemble.lr"} < {*found["plan2explore-v3"]}
    assert all(found.values())


def test_help_shows_these_options(parent, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for arguments in ([str(parent), "--help"], ["--help"]):
        with pytest.raises(SystemExit) as end:
            cli.main(["fork", *arguments])
        assert end.value.code == 0
        text = capsys.readouterr().out
        for word in ("--logdir", "--at", "--replay.alpha", "--train.ratio", "--seed"):
            assert word in text
        assert "--resume" not in text
    assert "RUN" in text and "dreamerv3" in text


def fork(parent, folder, *options):
    return cli.main(["fork", str(parent), "--logdir", str(folder), *options])


def test_a_fork_trains_on(parent, tmp_path, capsys):
    folder = tmp_path / "fork"
    assert fork(parent, folder, "--at", "30") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"fork of {parent} at step 30 (checkpoint 000002-step-30, checksum " in said
    assert "complete: 60 steps" in said
    assert lines(folder) == lines(parent)
    longer = tmp_path / "longer"
    assert (
        fork(parent, longer, "--train.steps", "80", "--train.ratio", "8", "--eval.every", "20") == 0
    )
    assert load_config(longer).train.steps == 80
    assert load_config(longer).train.ratio == 8
    assert cli.main(["train", "--logdir", str(longer), "--resume", "--train.steps", "90"]) == 0


BAD = {
    "--at 31": "no checkpoint of step 31; there are those of 30 (kept), 50, 60",
    "--at 1.5": "is not a whole number",
    "--at 30 --seed 3": "--seed is 0 in",
    "--at 30 --env toy/count": "--env is toy/two-rooms in",
    "--at 30 --agent dreamerv3": "--agent is fake in",
    "--at 30 --scale mini": "--scale is debug in",
    "--at 30 --replay curios": "did you mean curious?",
    "--at 30 --replay.capacity 99": "--replay.capacity is 140 in",
    "--at 30 --replay.window first": "--replay.window is last in",
    "--at 30 --replay.no-cross-episodes": "--replay.cross-episodes is True in",
    "--at 30 --env.length 5": "--env.length is 11 in",
    "--at 30 --train.batch-size 5": "--train.batch-size is 2 in",
    "--at 30 --train.prefill 5": "--train.prefill is 20 in",
    "--at 30 --replay.alpha -1": "--replay.alpha must be between 0 and 10",
    "--at 30 --replay uniform --replay.alpha 0.5": "--replay.alpha",
    "--at 30 --train.steps 20": "--record.keep-at must be at most --train.steps (20), got 30",
    "": "the checkpoint is of step 60: --train.steps must be more",
    "--resume": "--resume",
}


@pytest.mark.parametrize("options", BAD)
def test_bad_values_fail_before_anything_starts(options, parent, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    try:
        code = fork(parent, tmp_path / "fork", *options.split())
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert BAD[options] in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_the_run_is_named_first(parent, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for arguments in ([], ["--logdir", "new", str(parent)]):
        assert cli.main(["fork", *arguments]) == 2
        assert "name the run first: curious fork RUN --logdir NEW" in capsys.readouterr().err
    assert fork(tmp_path / "nowhere", tmp_path / "fork") == 2
    assert "nowhere holds no run" in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        cli.main(["fork", str(parent)])
    assert end.value.code == 2
    assert "--logdir" in capsys.readouterr().err


def test_a_second_fork_does_not_overwrite_the_first(parent, tmp_path, capsys):
    assert fork(parent, tmp_path / "fork", "--at", "30") == 0
    before = lines(tmp_path / "fork")
    capsys.readouterr()
    assert fork(parent, tmp_path / "fork", "--at", "30") == 2
    assert (
        f"`curious train --logdir {tmp_path / 'fork'} --resume` goes on" in capsys.readouterr().err
    )
    assert lines(tmp_path / "fork") == before


def test_a_disk_that_fails_is_told_of(parent, tmp_path, capsys, monkeypatch):
    def fsync(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        assert fork(parent, tmp_path / "fork", "--at", "30") == 1
    assert "fork is full" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_older_runs_are_forked(parent, tmp_path):
    """Their config.json is without what came later."""
    made = config("toy/two-rooms", env={"length": 11}, train={"steps": 60})
    run(made, tmp_path / "old")
    written = read_json(tmp_path / "old" / "config.json")
    del written["record"]["keep_at"]
    write_json(tmp_path / "old" / "config.json", written)
    assert fork(tmp_path / "old", tmp_path / "fork", "--train.steps", "80") == 0
    assert load_config(tmp_path / "fork").train.steps == 80
