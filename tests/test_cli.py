import importlib.metadata
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from curious_replay import cli, doctor
from curious_replay.commands import envs
from curious_replay.envs import find, make, names
from curious_replay.errors import UsageError
from curious_replay.machine import nvidia_cards


@pytest.fixture(autouse=True)
def narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def pictures(path):
    """All pictures of a GIF, [time, height, width, 3]."""
    with Image.open(path) as video:
        frames = []
        for index in range(video.n_frames):
            video.seek(index)
            frames.append(np.asarray(video.convert("RGB")))
        return np.stack(frames)


def has_magenta(images):
    red, green, blue = np.moveaxis(images.astype(int), -1, 0)
    return bool(((red > 200) & (green < 60) & (blue > 200)).any())


@pytest.mark.parametrize("arguments", [["envs"], ["envs", "list"]])
def test_envs_lists_each_name_on_one_line(arguments, capsys):
    assert cli.main(arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*names(), "minigrid/ID", "switch"]
    for name, line in zip(names(), lines, strict=False):
        assert find(name).description in line
    assert max(map(len, lines)) <= 80


def test_envs_lists_those_with_a_tag(capsys):
    assert cli.main(["envs", "list", "--tag", "toy"]) == 0
    listed = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert listed == ["toy/count", "toy/two-rooms", "toy/mirror"]
    assert cli.main(["envs", "list", "--tag", "tiny"]) == 2
    assert "no environment has the tag 'tiny'; tags are assay" in capsys.readouterr().err


def test_envs_lists_all_tasks_of_minigrid(capsys, monkeypatch):
    def listed():
        assert cli.main(["envs", "list", "--tag", "minigrid"]) == 0
        return [line.split()[0] for line in capsys.readouterr().out.splitlines()]

    found = listed()
    assert len(found) == len(set(found)) > 150
    assert {"minigrid/lava", "minigrid/DoorKey-5x5", "minigrid/FourRooms"} <= set(found)
    monkeypatch.setitem(sys.modules, "minigrid", None)  # as if it were not installed
    assert listed() == [name for name in names() if name.startswith("minigrid/")]


def test_help_names_every_tag(capsys):
    with pytest.raises(SystemExit):
        cli.main(["envs", "list", "--help"])
    help_text = capsys.readouterr().out
    for tag in {tag for name in names() for tag in find(name).tags}:
        assert tag in help_text


def test_show_records_a_random_policy(tmp_path, capsys):
    out = tmp_path / "videos" / "rooms.gif"
    assert cli.main(["envs", "show", "toy/two-rooms", "--frames", "30", "--out", str(out)]) == 0
    video = pictures(out)
    assert video.shape[1:] == (256, 256, 3)
    assert len(video) <= 31  # pictures alike in a row are one in a GIF
    assert len(video) > 5
    assert not has_magenta(video)
    assert "31 pictures of 30 frames, phase empty" in capsys.readouterr().out


def test_show_options_reach_the_video(tmp_path, capsys):
    out = tmp_path / "x.gif"
    show = ["envs", "show", "toy/two-rooms", "--out", str(out), "--frames", "40"]
    assert cli.main([*show, "--phase", "object", "--image-size", "32", "--zoom", "2"]) == 0
    assert pictures(out).shape[1:] == (64, 64, 3)
    assert "phase object" in capsys.readouterr().out
    videos = []
    for seed in ("1", "1", "2"):
        cli.main([*show, "--seed", seed])
        videos.append(out.read_bytes())
    assert videos[0] == videos[1] != videos[2]


def test_show_counts_frames_not_steps_and_says_which_camera(tmp_path, capsys):
    out = tmp_path / "ball.gif"
    show = ["envs", "show", "object-interaction", "--frames", "8", "--out", str(out)]
    assert cli.main([*show, "--camera", "ray", "--scale", "mini"]) == 0
    assert "5 pictures of 8 frames, camera ray, phase empty" in capsys.readouterr().out


def test_show_scale_is_that_of_the_registry(tmp_path, monkeypatch):
    made = []

    def note(*args, **kwargs):
        made.append(make(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(envs, "make", note)
    show = ["envs", "show", "toy/two-rooms", "--frames", "1", "--out", str(tmp_path / "x.gif")]
    for scale in ("paper", "mini"):
        cli.main([*show, "--scale", scale])
    appears = [env.clock.schedule.changes[1][0] for env in made]
    assert appears == [5_000, find("toy/two-rooms").mini["schedule"][1][0]]


def test_show_writes_into_out_by_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["envs", "show", "toy/count", "--frames", "3"]) == 0
    assert (tmp_path / "out" / "toy-count.gif").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["craftr"], "did you mean crafter"),
        (["switch"], "a switch is made of other worlds: name one of them"),
        (["minigrid/DoorKy-5x5"], "no task 'DoorKy-5x5'; did you mean DoorKey-5x5"),
        (["minigrid/new-objct"], "did you mean new-object?"),
        (
            ["minigrid/qqq"],
            "MiniGrid has no task 'qqq'; `curious envs list --tag minigrid` has all",
        ),
        (["crafter", "--phase", "ball"], "crafter has no phase"),
        (["crafter", "--camera", "ray"], "crafter has no camera"),
        (["toy/two-rooms", "--phase", "ball"], "unknown phase 'ball'"),
        (["toy/count", "--frames", "0"], "at least one frame"),
        (["toy/count", "--zoom", "0"], "zoom"),
        (["toy/count", "--image-size", "8"], "image_size"),
        (["toy/count", "--out", "video.mp4"], "written as .gif, got 'video.mp4'"),
    ],
)
def test_mistakes_are_explained_without_a_traceback(
    options, message, capsys, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["envs", "show", "--frames", "2", *options]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("bug", [ValueError("wrong"), TypeError("wrong")])
def test_mistakes_of_the_code_keep_their_traceback(bug, monkeypatch):
    def fails(arguments, console):
        raise bug

    monkeypatch.setattr(envs, "main", fails)
    with pytest.raises(type(bug)) as caught:
        cli.main(["envs"])
    assert caught.value is bug


def test_what_a_user_did_wrong_is_told_in_one_line(monkeypatch, capsys):
    def refuses(arguments, console):
        raise UsageError("--frames must be at least 1, got 0")

    monkeypatch.setattr(envs, "main", refuses)
    assert cli.main(["envs"]) == 2
    assert capsys.readouterr().err == "curious: --frames must be at least 1, got 0\n"


def test_installed_command():
    command = Path(sys.executable).parent / "curious"
    done = subprocess.run([command, "envs"], capture_output=True, text=True, check=True)
    assert "crafter-noreward" in done.stdout


def test_doctor_reports_versions_cameras_and_machine(tmp_path, capsys):
    assert cli.main(["doctor", "--folder", str(tmp_path), "--pictures", "2"]) == 0
    report = capsys.readouterr().out
    for package in ("numpy", "gymnasium", "mujoco", "crafter"):
        assert f"{package} " in report
        assert importlib.metadata.version(package) in report
    for word in ("python", "ray", "pictures/s", "processor", "graphics", "memory", "disk"):
        assert word in report


def test_doctor_explains_mistakes(tmp_path, capsys):
    assert cli.main(["doctor", "--folder", str(tmp_path / "none")]) == 2
    assert "does not exist" in capsys.readouterr().err
    assert cli.main(["doctor", "--pictures", "0"]) == 2
    assert "at least one picture" in capsys.readouterr().err


def verdicts(findings):
    return {found.name: (found.verdict, found.advice) for found in findings}


def test_doctor_says_how_to_get_a_missing_or_wrong_package(monkeypatch):
    real = importlib.metadata.version

    def pretend(name):
        if name == "crafter":
            raise importlib.metadata.PackageNotFoundError(name)
        return {"mujoco": "4.0.0", "torch": real("numpy")}.get(name, real(name))

    monkeypatch.setattr(importlib.metadata, "version", pretend)
    found = verdicts(doctor.packages())
    assert found["crafter"] == ("note", 'pip install -e ".[worlds]"')
    assert found["mujoco"][0] == "problem"
    assert "<4" in found["mujoco"][1]
    assert found["numpy"] == ("ok", "")


def test_doctor_without_torch_or_the_package_itself(monkeypatch):
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "torch" else "3.17.0")
    found = list(doctor.packages())
    assert verdicts(found)["torch"][0] == "problem"
    assert [each.name for each in found].count("torch") == 1
    monkeypatch.setattr(doctor, "_version", lambda name: None)
    assert verdicts(doctor.packages())["curious-replay"][0] == "problem"


def test_doctor_says_how_to_get_minigrid_which_is_no_problem(monkeypatch):
    assert verdicts(doctor.packages())["minigrid"] == ("ok", "")
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "minigrid" else real(name))
    verdict, advice = verdicts(doctor.packages())["minigrid"]
    assert (verdict, '[minigrid]"' in advice) == ("note", True)


def test_a_problem_makes_the_exit_code(monkeypatch, capsys, tmp_path):
    broken = doctor.Finding("versions", "numpy", "missing", "problem", "pip install numpy[x]")
    monkeypatch.setattr(doctor, "packages", lambda: [broken])
    assert cli.main(["doctor", "--folder", str(tmp_path), "--pictures", "1"]) == 1
    assert "pip install numpy[x]" in capsys.readouterr().out


def test_doctor_works_where_mujoco_does_not(tmp_path):
    (tmp_path / "mujoco.py").write_text("raise ImportError('libGL is broken')")
    run = "from curious_replay import cli; sys.exit(cli.main(['doctor']))"
    for code, word, end in (
        (f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n", "libGL is broken", 1),
        ("import sys; sys.modules['mujoco'] = None\n", "MuJoCo", 0),
    ):
        done = subprocess.run(
            [sys.executable, "-c", code + run], capture_output=True, text=True, check=False
        )
        assert done.returncode == end, done.stderr
        assert word in done.stdout
        assert "processor" in done.stdout


def test_doctor_says_which_worlds_a_newer_python_cannot_have(monkeypatch):
    monkeypatch.setattr(doctor, "obstacle", lambda module: "it needs labmaze")
    assert verdicts(doctor.packages())["dm-control"] == ("ok", "")
    monkeypatch.setitem(sys.modules, "dm_control", None)
    assert verdicts(doctor.packages())["dm-control"] == ("note", "it needs labmaze")


def test_doctor_reports_a_camera_that_breaks(monkeypatch):
    def breaks(camera, pictures):
        raise AttributeError("no attribute 'flex_vertedge'")

    monkeypatch.setattr(doctor, "_pictures_per_second", breaks)
    (found,) = {found for found in doctor.cameras(1) if found.name == "ray"}
    assert found.verdict == "problem"
    assert "flex_vertedge" in found.value


def test_doctor_knows_what_to_do_without_opengl(monkeypatch):
    monkeypatch.setattr(
        doctor, "camera_problems", lambda: {"egl": "absent", "osmesa": "absent", "ray": None}
    )
    found = verdicts(doctor.cameras(1))
    assert found["ray"][0] == "ok"
    for name in ("egl", "osmesa"):
        verdict, advice = found[name]
        assert verdict == "note"
        assert name in advice.lower()


def test_one_opengl_camera_is_enough(monkeypatch):
    monkeypatch.setattr(doctor, "_pictures_per_second", lambda camera, pictures: 1.0)
    monkeypatch.setattr(
        doctor, "camera_problems", lambda: {"egl": None, "osmesa": "absent", "ray": None}
    )
    assert {verdict for verdict, _ in verdicts(doctor.cameras(1)).values()} == {"ok"}


@pytest.mark.parametrize(
    ("card", "torch", "verdict", "advice"),
    [
        (None, "2.13.0", "note", "mini scale"),
        ("8.0", "2.13.0+cpu", "note", "without CUDA"),
        ("7.5", "2.13.0", "note", "bfloat16"),
        ("8.0", "2.13.0", "ok", ""),
    ],
)
def test_doctor_on_graphics(monkeypatch, card, torch, verdict, advice):
    cards = [] if card is None else [["A100", "40960 MiB", "40000 MiB", "550.54", card]]
    monkeypatch.setattr(doctor, "nvidia_cards", lambda *wanted: cards)
    monkeypatch.setattr(doctor, "_version", lambda name: torch)
    (found,) = doctor.graphics()
    assert found.name == "graphics"
    assert found.verdict == verdict
    assert advice in found.advice


def test_doctor_warns_of_little_memory_and_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "free_memory", lambda: 8e9)
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: type("D", (), {"free": 1e9}))
    found = verdicts(doctor.machine(tmp_path))
    assert "12.3 GB" in found["memory"][1]
    assert "--folder" in found["disk"][1]


def test_graphics_cards_are_read_from_the_driver(monkeypatch, tmp_path):
    tool = tmp_path / "nvidia-smi"
    row = "A100, 40960 MiB, 40000 MiB, 550.54, 8.0"
    tool.write_text(f"#!/bin/sh\necho '{row}'\necho '{row}'\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(doctor, "_version", lambda name: "2.13.0")
    found = [*doctor.graphics()]
    assert [each.name for each in found] == ["graphics 0", "graphics 1"]
    assert found[1].value == "A100, 40960 MiB, 40000 MiB free, driver 550.54, generation 8.0"
    tool.write_text("#!/bin/sh\nexit 9\n")
    assert nvidia_cards("name") == []
    tool.unlink()
    assert nvidia_cards("name") == []


def test_doctor_writes_a_report_to_be_sent(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(doctor, "packages", lambda: [doctor.Finding("versions", "python", "3")])
    monkeypatch.setattr(doctor, "cameras", lambda pictures: [])
    path = tmp_path / "report.json"
    assert cli.main(["doctor", "--folder", str(tmp_path), "--report", str(path)]) == 0
    assert f"written to {path}" in capsys.readouterr().out.replace("\n", "")
    told = json.loads(path.read_text())
    assert told["findings"][0]["name"] == "python"
    assert told["device"] in ("cpu", "cuda")
    assert told["precision"] == "float32" or told["device"] == "cuda"
    assert set(told["seconds_per_update"]) == {"dreamerv3 debug", "dreamerv3 mini"}
    assert all(
        each > 0 for each in (*told["seconds_per_update"].values(), *told["tflops"].values())
    )
    assert cli.main(["doctor", "--pictures", "1", "--report", str(tmp_path / "no" / "x")]) == 2
    assert "does not exist" in capsys.readouterr().err


def test_help_of_train_does_not_wait_for_torch():
    code = """
import sys
from curious_replay import cli
try:
    cli.main(["train", "--help"])
except SystemExit:
    pass
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_a_reader_that_has_seen_enough_is_no_error():
    command = [sys.executable, "-m", "curious_replay.cli", "train", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # before anything is written
        assert process.stderr.read() == b""
    assert process.returncode == 141
