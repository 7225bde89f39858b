import multiprocessing
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.fake_agent import FakeAgent
from helpers.runs import config, run

from curious_replay import cli
from curious_replay.run import evaluate, load_agent
from curious_replay.run.loop.evaluation import Evaluation


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained") / "run"
    schedule = ((0, "empty"), (30, "object"))
    run(config("toy/two-rooms", env={"schedule": schedule}, train={"steps": 60}), folder)
    return folder


def test_the_agent_of_a_run_is_evaluated_in_five_lines(trained, tmp_path):
    saved = load_agent(trained)
    episodes = evaluate(saved, episodes=3, video=tmp_path / "out.mp4")
    assert len(episodes) == 3
    assert {episode.values["phase"] for episode in episodes} == {"object"}
    assert {episode.values["length"] for episode in episodes} == {10}  # --eval.max-steps
    assert (tmp_path / "out.mp4").stat().st_size > 500
    assert saved.step == saved.frame == 60


def test_evaluation_can_be_repeated_and_leaves_the_agent_alone(trained):
    saved = load_agent(trained)
    before = {name: value.clone() for name, value in saved.agent.tensors().items()}
    results = [evaluate(saved, 2, seed=seed) for seed in (1, 1, 2)]
    values = [[episode.values for episode in result] for result in results]
    assert values[0] == values[1]
    for name, value in saved.agent.tensors().items():
        assert (value == before[name]).all()


def test_an_environment_that_died_between_two_evaluations_is_made_anew(trained):
    saved = load_agent(trained)
    settings = replace(saved.config, env=replace(saved.config.env, processes=True))
    evaluation = Evaluation(saved.agent, settings, saved.facts)
    (before,) = evaluation.run(1, seed=5, phase="object")
    (worker,) = multiprocessing.active_children()
    worker.kill()
    worker.join()
    (after,) = evaluation.run(1, seed=5, phase="object")
    evaluation.close()
    assert after.values == before.values


def test_the_agent_is_the_saved_one(trained):
    saved = load_agent(trained)
    new = FakeAgent(saved.config.agent, saved.facts.spaces, 0)
    assert not np.allclose(saved.agent.weight.detach(), new.weight.detach())
    assert int(saved.agent.calls) == 21


def test_the_command_prints_a_table_and_writes_a_video(trained, tmp_path, capsys):
    video = tmp_path / "videos" / "out.mp4"
    code = cli.main(["eval", str(trained), "--episodes", "2", "--video", str(video)])
    assert code == 0
    out = capsys.readouterr().out
    assert "toy/two-rooms at step 60: return 0.00" in out
    assert "over 2 episodes" in out
    assert video.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{run}", "--episodes", "0"], "episodes must be at least 1"),
        (["{run}", "--video", "video.avi"], "video must end in .mp4, got 'video.avi'"),
        (["{run}", "--phase", "ball"], "phase must be one of empty, object, got 'ball'"),
        (["{run}", "--episode-frames", "9"], "episodes of toy/two-rooms end by themselves"),
        (["{run}", "--seed", "-3"], "seed must be a whole number from 0 on, got -3"),
        (["{run}", "--device", "cuda"], "curious: --device cuda: torch finds no graphics card"),
        (["nowhere"], "nowhere holds no run"),
    ],
)
def test_mistakes_are_explained(arguments, message, trained, capsys, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert cli.main(["eval", *(a.format(run=trained) for a in arguments)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("processes", [False, True])
def test_a_video_of_what_is_rendered_where_the_agent_sees_no_picture(processes, tmp_path):
    folder, video = tmp_path / "run", tmp_path / "out.mp4"
    settings = config(
        "own_envs:Drawn", env={"processes": processes}, train={"steps": 20}, eval={"max_steps": 20}
    )
    run(settings, folder)
    (played, _) = evaluate(load_agent(folder), 2, video=video)
    # The picture of the last step too, before the next episode begins.
    assert [int(picture[0, 0, 0]) for picture in played.pictures] == [20 * i for i in range(11)]
    assert video.stat().st_size > 500
    (again,) = evaluate(load_agent(folder), 1)
    assert again.values == played.values  # which is not disturbed by it
    assert not again.pictures


SWITCHED = {
    "phases": ("a=own_envs:Drawn", "b=own_envs:DrawnAnyway"),
    "schedule": ((0, "a"), (9, "b")),
}


@pytest.mark.parametrize(
    ("env", "settings"),
    [
        ("CartPole-v1", {}),
        ("own_envs:DrawnAnyway", {}),
        ("minigrid/Empty-5x5", {"observation": "symbols"}),
        ("switch", SWITCHED),
    ],
)
def test_whatever_can_render_has_a_video(env, settings, tmp_path):
    if env == "CartPole-v1":
        pytest.importorskip("pygame")
    if env.startswith("minigrid"):
        pytest.importorskip("minigrid")
    run(config(env, env=settings, train={"steps": 20}), tmp_path / "run")
    video = tmp_path / "out.mp4"
    assert cli.main(["eval", str(tmp_path / "run"), "--episodes", "1", "--video", str(video)]) == 0
    assert video.stat().st_size > 500


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ("own_envs:Numbers", "render() raised NotImplementedError"),
        (
            "own_envs:DrawnBadly",
            "render() returns float64 [40, 60]; right would be a picture, uint8",
        ),
    ],
)
def test_what_cannot_render_is_refused_with_the_reason(env, said, tmp_path, capsys):
    run(config(env, train={"steps": 20}), tmp_path / "run")
    command = ["eval", str(tmp_path / "run"), "--video", str(tmp_path / "out.mp4")]
    assert cli.main(command) == 2
    assert f"{env} shows no image, and {said}" in capsys.readouterr().err
    assert not (tmp_path / "out.mp4").exists()


@pytest.mark.parametrize("env", ["toy/count", "own_envs:Phases"])
def test_a_phase_is_refused_where_none_can_be_chosen(env, tmp_path, capsys):
    run(config(env, train={"steps": 20}), tmp_path / "run")
    command = ["eval", str(tmp_path / "run"), "--episodes", "1"]
    assert cli.main([*command, "--phase", "late"]) == 2
    said = capsys.readouterr().err
    assert f"phase 'late': {env} has no phases that it can be put into; leave it out" in said
    assert cli.main(command) == 0


def test_other_options_of_the_command(trained, capsys):
    code = cli.main(
        [
            "eval",
            str(trained),
            "--episodes",
            "1",
            "--phase",
            "empty",
            "--seed",
            "3",
            "--device",
            "cpu",
        ]
    )
    assert code == 0
    assert "empty" in capsys.readouterr().out


def test_episodes_may_be_longer_than_in_training(tmp_path, capsys):
    short = ["--env.episode-frames", "12", "--train.steps", "30", "--train.prefill", "60"]
    arguments = ["--env", "control/cartpole_balance", "--agent", "fake", "--scale", "debug"]
    assert cli.main(["train", *arguments, *short, "--logdir", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    command = ["eval", str(tmp_path / "run"), "--episodes", "1"]
    for more, steps in ([], 6), (["--episode-frames", "61"], 31):
        assert cli.main([*command, *more]) == 0
        assert capsys.readouterr().out.splitlines()[1].split()[-2] == str(steps)
    assert cli.main([*command, "--episode-frames", "0"]) == 2
    assert "episode_frames must be at least 1" in capsys.readouterr().err


def test_light_commands_do_not_wait_for_torch():
    code = "import sys; from curious_replay import cli; cli.main(['envs']); cli.main(['--help'])"
    code += "; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_unknown_commands_are_answered_with_the_nearest(capsys):
    assert cli.main(["trian"]) == 2
    assert "did you mean train?" in capsys.readouterr().err
    assert cli.main([]) == 2
    assert cli.main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in cli.COMMANDS)
