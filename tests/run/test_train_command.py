"""Every option of `curious train`."""

import re
import sys
from dataclasses import fields, is_dataclass

import pytest
from helpers.runs import lines

from curious_replay import cli, plugins
from curious_replay.analysis import stored
from curious_replay.analysis.load import load_run
from curious_replay.commands.train import parse
from curious_replay.run import load_config, preset
from curious_replay.run.record.files import read_lines
from curious_replay.run.settings.config import Choice, differences
from curious_replay.run.settings.config_io import option
from curious_replay.run.settings.replay_config import REPLAYS

ENVS = {
    "crafter": "crafter",
    "control": "control/cartpole_balance",
    "constrained": "constrained/cup_catch",
    "background": "background-swap/walker_walk",
    "assay": "object-interaction",
    "count": "toy/count",
    "rooms": "toy/two-rooms",
    "mirror": "toy/mirror",
    "minigrid": "minigrid/DoorKey-5x5",
    "keys": "minigrid/key-swap",
    "lava": "minigrid/lava",
    "object": "minigrid/new-object",
    "user": "CartPole-v1",
    "switch": "switch",
}
# A value for each option, other than that of any preset; flags have none.
VALUES = {
    "--seed": "5",
    "--env.num-envs": "3",
    "--env.max-restarts": "7",
    "--env.processes": "",
    "--env.no-processes": "",
    "--env.image-size": "128",
    "--env.length": "17",
    "--env.deterministic": "",
    "--env.no-deterministic": "",
    "--env.scale": "paper",
    "--env.action-repeat": "5",
    "--env.camera": "ray",
    "--env.shadows": "",
    "--env.no-shadows": "",
    "--env.episode-frames": "77",
    "--env.schedule": "0 empty 30 object",
    "--env.images": "pictures",
    "--env.clips": "boat bmx-bumps",
    "--env.background-seed": "4",
    "--env.reward": "released",
    "--env.appears": "away",
    "--env.replay-episode-steps": "250",
    "--env.ending": "truncated",
    "--env.room": "5",
    "--env.rooms": "3",
    "--env.object-size": "3",
    "--env.television": "4",
    "--env.floor": "random",
    "--env.view": "5",
    "--env.observation": "symbols",
    "--env.size": "17",
    "--env.crossings": "2",
    "--env.arguments-json": '{"a":{}}',
    "--env.phases": "before=CartPole-v1 after=my_module:Heavy",
    "--env.at": "episode",
    "--agent.size": "M",
    "--agent.unimix": "0.02",
    "--agent.bins": "41",
    "--agent.free-nats": "0.5",
    "--agent.dynamics-scale": "0.7",
    "--agent.representation-scale": "0.2",
    "--agent.model-lr": "7e-4",
    "--agent.model-eps": "1e-6",
    "--agent.model-clip": "10",
    "--agent.actor-lr": "7e-5",
    "--agent.critic-lr": "7e-5",
    "--agent.actor-critic-eps": "1e-6",
    "--agent.actor-critic-clip": "10",
    "--agent.imagination": "7",
    "--agent.starts": "0.5",
    "--agent.discount-horizon": "100",
    "--agent.return-lambda": "0.9",
    "--agent.entropy": "1e-3",
    "--agent.return-decay": "0.9",
    "--agent.slow-fraction": "0.1",
    "--agent.td": "replayed",
    "--replay.capacity": "5000",
    "--replay.storage": "disk",
    "--replay.window": "first",
    "--replay.cross-episodes": "",
    "--replay.no-cross-episodes": "",
    "--replay.repeats": "",
    "--replay.no-repeats": "",
    "--replay.novelty": "0.2",
    "--replay.alpha": "0.5",
    "--replay.eps": "0.1",
    "--replay.p-max": "1e6",
    "--replay.signal": "kl",
    "--replay.dialect": "dv2",
    "--replay.c": "10",
    "--replay.beta": "0.5",
    "--replay.fraction": "0.25",
    "--replay.td.alpha": "0.5",
    "--replay.td.eps": "0.1",
    "--replay.td.p-max": "1e6",
    "--replay.adversarial.alpha": "0.5",
    "--replay.adversarial.eps": "0.1",
    "--replay.adversarial.p-max": "1e6",
    "--replay.adversarial.signal": "likelihood",
    "--replay.adversarial.dialect": "dv3",
    "--train.steps": "1e5",
    "--train.ratio": "32.5",
    "--train.batch-size": "3",
    "--train.batch-length": "10",
    "--train.prefill": "77",
    "--train.pretrain": "7",
    "--train.log-every": "77",
    "--train.save-every": "77",
    "--train.save-minutes": "1.5",
    "--train.nonfinite": "skip",
    "--train.nonfinite-limit": "3",
    "--train.device": "cpu",
    "--train.precision": "bfloat16",
    "--train.graphs": "",
    "--train.no-graphs": "",
    "--train.threads": "1",
    "--eval.every": "77",
    "--eval.episodes": "7",
    "--eval.max-steps": "77",
    "--eval.video": "",
    "--eval.no-video": "",
    "--record.tensorboard": "",
    "--record.no-tensorboard": "",
    "--record.wandb": "",
    "--record.no-wandb": "",
    "--record.video-every": "77",
    "--record.video-context": "4",
    "--record.video-rows": "2",
    "--record.probe-every": "7",
    "--record.snapshot-every": "7",
    "--record.snapshot-steps": "9",
    "--replay.clear-at-change": "1",
    "--record.print-seconds": "3",
    "--record.keep-at": "77 99",
}
CHOICES = [
    *(f"--env {env} --replay curious" for env in ENVS.values()),
    *(f"--env toy/count --replay {replay}" for replay in REPLAYS),
]
SELECTORS = {"--env", "--agent", "--replay", "--scale", "--logdir", "--resume", "--no-resume"}


def options_of(settings, path):
    """Names of all options that a group of settings has."""
    for field in fields(settings):
        value, name = getattr(settings, field.name), f"{path}.{field.name}"
        if is_dataclass(value):
            yield from options_of(value, name)
        elif isinstance(value, bool):
            yield option(name)
            yield option(f"{path}.no_{field.name}")
        else:
            yield option(name)


def options(choice):
    base = parse([*choice.split(), "--scale", "debug"]).config
    groups = ("env", "agent", "replay", "train", "eval", "record")
    return ["--seed", *(o for g in groups for o in options_of(getattr(base, g), g))]


@pytest.mark.parametrize("choice", CHOICES)
def test_every_option_changes_what_it_says_and_nothing_else(choice):
    arguments = [*choice.split(), "--scale", "debug"]
    base = parse(arguments).config
    for name in options(choice):
        value = VALUES[name]
        if name == "--env.schedule" and "two-rooms" not in choice:
            value = value.replace("empty", "constrained")
        given = [value] if name == "--env.arguments-json" else value.split()
        if name == "--record.probe-every" and not re.search("object-interaction|two-rooms", choice):
            with pytest.raises(ValueError, match="it must be 0"):
                parse([*arguments, name, *given]).config  # noqa: B018
            continue
        new = parse([*arguments, name, *given]).config
        changes = differences(base, new)
        if value == "":  # of the two flags of a switch, one says what is so anyway
            positive = name.replace(".no-", ".")
            negative = re.sub(r"\.(?=[^.]*$)", ".no-", positive)
            both = [differences(base, parse([*arguments, o]).config) for o in (positive, negative)]
            assert sorted(map(len, both)) == [0, 1]
            assert {*both[0], *both[1]} == {positive}
        else:
            assert list(changes) == [name], f"{name} {value} changed {changes}"


def test_help_shows_exactly_these_options(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = set()
    for choice in CHOICES:
        with pytest.raises(SystemExit) as end:
            cli.main(["train", *choice.split(), "--help"])
        assert end.value.code == 0
        text = capsys.readouterr().out
        found = set(re.findall(r"(?<![\w`])--[a-z][\w.-]*", text))
        found -= {"--help", *plugins.FORMS}  # which are of all commands
        assert found == {*options(choice), *SELECTORS}
        shown |= found
    assert shown == {*VALUES, *SELECTORS}
    for word in (*REPLAYS, "dreamerv3", "paper", "mini", "debug"):
        assert word in text


TRAIN = ["train", "--agent", "fake", "--scale", "debug", "--env", "toy/two-rooms"]
SHORT = ["--train.steps", "40", "--env.length", "9"]


def go(folder, *more):
    return cli.main([*TRAIN, *SHORT, "--logdir", str(folder), *more])


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain") / "run"
    assert go(folder) == 0
    return folder


def metrics(folder):
    return read_lines(folder / "metrics.jsonl")


def distinct(folder):
    return metrics(folder)[-1]["replay/distinct"]


def novelty(folder):
    return metrics(folder)[-1]["replay/novelty_share"]


def object_pixels(folder):
    """Return the most pixels of the object in any stored picture."""
    return stored.newest(load_run(folder)).field("log_object_pixels").max()


# Options whose effect must be seen in a run; what to look for is said below.
EFFECTS = {
    "--seed 5": lambda f, p: lines(f) != lines(p),
    "--env.num-envs 3": lambda f, p: {e["env"] for e in read_lines(f / "episodes.jsonl")} > {0},
    "--env.length 5": lambda f, p: {e["length"] for e in read_lines(f / "episodes.jsonl")} == {5},
    "--env.image-size 16": lambda f, p: lines(f) != lines(p),
    "--env.image-size 64": lambda f, p: lines(f) != lines(p),
    "--env.view 5": lambda f, p: lines(f) != lines(p),
    "--env.view None": lambda f, p: lines(f) != lines(p),
    "--env.room 4": lambda f, p: lines(f) != lines(p),
    "--env.television 4": lambda f, p: lines(f) != lines(p),
    "--env.object-size 3 --env.schedule 0 object --env.view None": (
        lambda f, p: object_pixels(f) >= 9 * 2  # 9 cells, of which one has up to 6 pixels
    ),
    "--env.rooms 3 --env.view None": lambda f, p: lines(f) != lines(p),
    "--env.schedule 0 object": lambda f, p: (
        {e["phase"] for e in read_lines(f / "episodes.jsonl")} == {"object"}
    ),
    "--train.steps 20": lambda f, p: metrics(f)[-1]["step"] == 20,
    "--train.ratio 8": lambda f, p: metrics(f)[-1]["update"] == 21,
    "--train.batch-size 4": lambda f, p: metrics(f)[-1]["replay/sampled"] % 4 == 0,
    "--train.batch-length 8": lambda f, p: metrics(f)[-1]["update"] == 6,
    "--train.prefill 30": lambda f, p: metrics(f)[0]["update"] == 0,
    "--train.pretrain 5": lambda f, p: metrics(f)[-1]["update"] == metrics(p)[-1]["update"] + 4,
    "--train.log-every 10": lambda f, p: len(metrics(f)) == 4,
    "--train.save-every 20": lambda f, p: (f / "checkpoints" / "000002-step-20").exists(),
    "--train.save-every 0": lambda f, p: (f / "checkpoints" / "000001-step-0").exists(),
    "--train.threads 1": lambda f, p: '"threads": 1' in (f / "meta.json").read_text(),
    "--replay.capacity 20": lambda f, p: metrics(f)[-1]["replay/steps"] == 20,
    "--replay.storage disk": lambda f, p: (f / "replay").is_dir() and lines(f) == lines(p),
    "--replay.window first": lambda f, p: lines(f) != lines(p),
    "--replay.no-cross-episodes": lambda f, p: lines(f) != lines(p),
    "--replay.no-repeats": lambda f, p: distinct(f) > distinct(p),
    "--replay balanced --replay.novelty 0.2": lambda f, p: novelty(f) == pytest.approx(0.2),
    "--replay.alpha 5": lambda f, p: lines(f) != lines(p),
    "--replay.p-max 9e6": lambda f, p: metrics(f)[-1]["replay/priority_max"] == 9e6,
    "--replay.dialect dv2": lambda f, p: "replay/model_minimum" in metrics(f)[-1],
    "--replay.signal kl --replay.c 0": lambda f, p: lines(f) != lines(p),
    "--replay uniform": lambda f, p: metrics(f)[-1]["replay/priority_mean"] == 1e5,
    "--replay td+adversarial": lambda f, p: "replay/second_priority_mean" in metrics(f)[-1],
    "--eval.every 20": lambda f, p: sum(
        e["mode"] == "eval" for e in read_lines(f / "episodes.jsonl")
    )
    == 2 and len(list((f / "videos").iterdir())) == 2,
    "--eval.every 20 --eval.no-video": lambda f, p: not list((f / "videos").iterdir()),
    "--eval.every 20 --eval.episodes 2 --eval.max-steps 3": lambda f, p: (
        [e["length"] for e in read_lines(f / "episodes.jsonl") if e["mode"] == "eval"] == [3] * 4
    ),
    "--record.keep-at 20 30": lambda f, p: (
        sorted(path.name for path in (f / "checkpoints").iterdir())
        == ["000002-step-20", "000003-step-30", "000004-step-40"]
    ),
    "--record.tensorboard": lambda f, p: list((f / "events").iterdir()),
    "--record.video-every 20 --record.video-rows 1 --record.video-context 1": lambda f, p: (
        len(list((f / "videos").iterdir())) == 2
    ),
}  # fmt: skip


@pytest.mark.parametrize("options", EFFECTS)
def test_options_have_their_effect(options, plain, tmp_path):
    assert go(tmp_path / "run", *options.split()) == 0
    assert EFFECTS[options](tmp_path / "run", plain), options


BAD = {
    "--env craftr": "did you mean crafter",
    "--agent dreamer": "--agent must be one of dreamerv3",
    "--replay curios": "did you mean curious?",
    "--scale large": "--scale must be one of paper, mini, debug",
    "--seed -1": "--seed must be from 0",
    "--seed x": "--seed",
    "--env.num-envs 0": "--env.num-envs must be from 1 to 4096, got 0",
    "--env.image-size 48": "--env.image-size must be one of 16, 32, 64, 128, got 48",
    "--env crafter --env.image-size 16": "--env.image-size must be one of 32, 64, 128, got 16",
    "--env.image-size 16 --env.view None": "image_size is 16 pixels and 21 cells are in view",
    "--env.length 0": "--env.length must be at least 1",
    "--env.view 4": "--env.view must be an odd number",
    "--env minigrid/lava --env.view 4": "--env.view must be an odd number of cells, got 4",
    "--env minigrid/lava --env.view 1": "--env.view must be at least 3",
    "--env minigrid/lava --env.view 9 --env.image-size 16": "a cell needs 2 x 2 pixels",
    "--env minigrid/lava --env.size 4": "--env.size must be from 5 to 63, got 4",
    "--env minigrid/lava --env.size 8": "size must be an odd number of cells from 5 on, got 8",
    "--env minigrid/lava --env.crossings 0": "--env.crossings must be at least 1",
    "--env minigrid/lava --env.crossings 9": "crossings must be from 1 to 4 at size 7, got 9",
    "--env minigrid/key-swap --env.size 5": "--env.size must be from 6 to 64, got 5",
    "--env minigrid/key-swap --env.length 0": "--env.length must be at least 1",
    "--env minigrid/new-object --env.size 10": "size must be 9, 13, 17 or so on",
    "--env minigrid/new-object --env.observation words": "--env.observation",
    "--env minigrid/DoorKy-5x5": "did you mean DoorKey-5x5",
    "--env.room 1": "--env.room must be at least 3",
    "--env.television 10": "television must be from 0 to 9 cells wide, got 10",
    "--env.object-size 2": "object_size must be an odd number of cells from 1 on, less than the 9",
    "--env.television -1": "--env.television must be at least 0",
    "--env toy/mirror --env.floor red": "--env.floor",
    "--env.rooms 1": "--env.rooms must be from 2 to 100, got 1",
    "--env.schedule 5 object": "--env.schedule: a schedule begins with frame 0",
    "--env.schedule 0 ball": "unknown phase 'ball'",
    "--env.scale huge": "--env.scale",
    "--env control/cup_catch --env.action-repeat 0": "--env.action-repeat must be from 1 to 100",
    "--env control/cup_catch --env.episode-frames 0": "--env.episode-frames must be at least 1",
    "--env control/cup_catch --env.camera eye": "--env.camera",
    "--env crafter --env.length -1": "--env.length must be at least 0",
    "--env object-interaction --env.replay-episode-steps 0": "--env.replay-episode-steps",
    "--env object-interaction --env.appears here": "--env.appears",
    "--env CartPole-v1 --env.arguments-json 5": "--env.arguments-json must be a JSON object",
    "--env CartPole-v1 --env.arguments-json {": "--env.arguments-json must be a JSON object",
    "--agent.lr 0": "--agent.lr must be from 1e-30 to 1, got 0.0",
    "--agent.lr nan": "--agent.lr must be from",
    "--replay.capacity 3": "--replay.capacity must be at least 4",
    "--replay.capacity 1.5": "is not a whole number",
    "--replay.capacity lots": "is not a whole number",
    "--replay.storage tape": "--replay.storage",
    "--replay.window middle": "--replay.window",
    "--replay.alpha -1": "--replay.alpha must be between 0 and 10, got -1.0",
    "--replay.beta 1.1": "--replay.beta must be between 0 and 1",
    "--replay.c -1": "--replay.c must be between 0",
    "--replay.eps inf": "--replay.eps must be between 0",
    "--replay.p-max 0": "--replay.p-max must be between 1e-30",
    "--replay.signal td": "--replay.signal",
    "--replay.dialect dv4": "--replay.dialect",
    "--replay.fraction 0.5": "--replay.fraction",  # the curious rule has none
    "--replay uniform --replay.alpha 0.5": "--replay.alpha",
    "--replay td+adversarial --replay.fraction 2": "--replay.fraction must be from 0 to 1",
    "--replay td+adversarial --replay.td.alpha 11": "--replay.td.alpha must be between 0 and 10",
    "--train.steps 0": "--train.steps must be at least 1, got 0",
    "--train.steps 1e400": "is not a whole number",
    "--train.ratio -1": "--train.ratio must be from 0",
    "--train.ratio nan": "--train.ratio must be from 0",
    "--train.batch-size 0": "--train.batch-size must be from 1",
    "--train.batch-length 1": "--train.batch-length must be from 2",
    "--train.prefill -1": "--train.prefill must be at least 0",
    "--train.pretrain 0": "--train.pretrain must be from 1 to 1e+06, got 0",
    "--train.log-every 0": "--train.log-every must be at least 1",
    "--train.save-every -1": "--train.save-every must be at least 0",
    "--train.save-minutes -1": "--train.save-minutes must be at least 0",
    "--train.nonfinite ignore": "--train.nonfinite",
    "--train.nonfinite-limit 0": "--train.nonfinite-limit must be at least 1",
    "--train.device tpu": "--train.device",
    "--train.threads -1": "--train.threads must be from 0",
    "--eval.every -1": "--eval.every must be at least 0",
    "--eval.episodes 0": "--eval.episodes must be from 1",
    "--eval.max-steps 0": "--eval.max-steps must be at least 1",
    "--record.video-every 10 --record.video-context 4": "--record.video-context must be below",
    "--record.video-context 0": "--record.video-context must be at least 1",
    "--record.video-rows 0": "--record.video-rows must be from 1",
    "--env toy/count --record.probe-every 5": "toy/count has none, so it must be 0",
    "--record.video-every -1": "--record.video-every must be at least 0",
    "--record.print-seconds -1": "--record.print-seconds must be at least 0",
    "--record.keep-at 0": "--record.keep-at must be at least 1, got 0",
    "--record.keep-at 50 1e6": "--record.keep-at must be at most --train.steps (200), got 1000000",
    "--train.stepps 5": "--train.steps",
    "--nothing": "--nothing",
}


@pytest.mark.parametrize("options", BAD)
def test_bad_values_fail_before_anything_starts(options, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    try:
        code = cli.main([*TRAIN, "--logdir", str(tmp_path / "run"), *options.split()])
    except SystemExit as end:
        code = end.code
    assert code == 2
    assert BAD[options] in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_weights_and_biases_must_be_installed(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert go(tmp_path / "run", "--record.wandb") == 2
    assert (
        "--record.wandb needs wandb, which is not installed: pip install" in capsys.readouterr().err
    )
    assert not (tmp_path / "run").exists()


def test_values_may_stand_after_an_equals_sign(tmp_path):
    command = parse(["--env=toy/count", "--scale=debug", "--replay=td", "--train.steps=1e3"])
    assert command.config.choice == Choice(env="toy/count", replay="td", scale="debug")
    assert command.config.train.steps == 1000


def test_a_run_folder_is_named_after_its_choices():
    command = parse(["--env", "toy/count", "--scale", "debug", "--seed", "3"])
    assert str(command.folder) == "runs/toy-count-dreamerv3-curious-debug-3"
    assert command.config.seed == 3


def test_a_second_run_does_not_overwrite_the_first(plain, capsys):
    before = lines(plain)
    assert go(plain) == 2
    assert "holds a run already: add --resume" in capsys.readouterr().err
    assert lines(plain) == before


def test_resume_needs_no_settings_and_refuses_others(tmp_path, capsys):
    assert go(tmp_path, "--replay.alpha", "0.5") == 0
    resume = ["train", "--logdir", str(tmp_path), "--resume"]
    assert cli.main([*resume, "--train.steps", "60"]) == 0
    assert load_config(tmp_path).train.steps == 60
    assert load_config(tmp_path).replay.alpha == 0.5
    capsys.readouterr()
    for options, message in {
        "--replay.alpha 0.7": "--replay.alpha was 0.5 in this run and cannot become 0.7",
        "--replay uniform": "--replay was curious in this run and cannot become uniform",
        "--env crafter": "--env was toy/two-rooms in this run",
        "--env.num-envs 2": "--env.num-envs was 1",
        "--seed 2": "--seed was 0",
        "--seed abc": "--seed must be a whole number from 0 on, got 'abc'",
        "--train.batch-size 5": "--train.batch-size was 2",
    }.items():
        assert cli.main([*resume, *options.split()]) == 2
        assert message in capsys.readouterr().err
    assert metrics(tmp_path)[-1]["step"] == 60


def test_resume_without_a_run_begins_one(tmp_path):
    assert go(tmp_path / "new", "--resume") == 0
    assert metrics(tmp_path / "new")[-1]["step"] == 40


def test_a_loss_that_is_not_finite_ends_with_code_1(tmp_path, capsys):
    assert go(tmp_path, "--agent.fail-at", "3") == 1
    assert "the reward loss is not finite" in capsys.readouterr().err


def test_presets_are_the_defaults_of_the_options():
    for scale in ("paper", "mini", "debug"):
        assert parse(["--scale", scale]).config == preset(Choice(scale=scale))
