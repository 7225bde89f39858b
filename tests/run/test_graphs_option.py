"""Updates that a graphics card repeats: the option, who is refused, runs of earlier versions."""

import pytest
from helpers.fake_agent import FakeAgent, FakeConfig
from helpers.runs import config as run_config

from curious_replay import cli
from curious_replay.agents.spaces import Spaces
from curious_replay.commands import train
from curious_replay.errors import UsageError
from curious_replay.run import Choice, preset
from curious_replay.run.loop.trainer import unread_signals
from curious_replay.run.settings.allowed import CHANGEABLE, may_change
from curious_replay.run.settings.config import Config
from curious_replay.run.settings.presets import changed

NAMES = ["--agent", "dreamerv3", "--scale", "debug"]


def test_it_is_off_unless_asked_for():
    assert train.parse(NAMES).config.train.graphs is False
    assert train.parse([*NAMES, "--train.graphs"]).config.train.graphs is True
    assert train.parse([*NAMES, "--train.no-graphs"]).config.train.graphs is False


def test_runs_of_earlier_versions_have_none_and_any_may_change_it():
    values = preset(Choice()).to_json()
    del values["train"]["graphs"]
    assert Config.from_json(values).train.graphs is False
    assert may_change("--train.graphs", CHANGEABLE)


def test_a_run_on_a_cpu_is_refused_in_one_line(tmp_path, capsys):
    folder = tmp_path / "run"
    options = ["--env", "toy/two-rooms", *NAMES, "--train.device", "cpu", "--train.graphs"]
    assert cli.main(["train", *options, "--logdir", str(folder)]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "curious: --train.graphs needs a graphics card, and this run computes on the cpu: leave it "
        "out, or use --train.device cuda"
    ]
    assert not folder.exists()


def test_an_agent_that_does_not_say_that_it_can_is_refused():
    agent = FakeAgent(FakeConfig(), Spaces(2, discrete=True, image=(8, 8)), seed=0)
    with pytest.raises(UsageError, match="FakeAgent does not say that its updates can be recorded"):
        agent.use_graphs(())


def test_signals_that_a_rule_reads_or_a_fork_may_read_are_made():
    config = run_config()
    assert unread_signals(config) == {"model", "likelihood", "kl", "td"} - {
        *config.replay.rule().signals
    }
    assert unread_signals(changed(config, {"record.keep_at": (1,)})) == ()
