import ast
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

from curious_replay import extras
from curious_replay.envs import find, make, names, registry


def test_names_and_ids_are_unique():
    assert len(set(names())) == len(names())
    assert len({entry.gymnasium_id for entry in registry.ENTRIES}) == len(registry.ENTRIES)


@pytest.mark.parametrize("entry", registry.ENTRIES, ids=names())
def test_every_entry_is_described_and_registered(entry):
    assert 0 < len(entry.description) <= 38
    assert entry.tags
    assert gymnasium.spec(entry.gymnasium_id).kwargs == dict(entry.kwargs)
    assert {*entry.kwargs, *entry.mini} <= set(registry.arguments(entry.name))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [("craftr", "crafter"), ("toy/two_rooms", "toy/two-rooms"), ("rooms", "toy/two-rooms")],
)
def test_unknown_name_lists_the_nearest(wrong, right):
    with pytest.raises(ValueError, match=f"unknown environment '{wrong}'; did you mean .*{right}"):
        make(wrong)


def test_name_like_no_other_points_to_the_list():
    with pytest.raises(ValueError, match="curious envs"):
        find("zzz")


def test_arguments_reach_the_environment():
    env = make("crafter-noreward", image_size=32)
    assert env.unwrapped._game._reward is False
    assert env.observation_space["image"].shape == (32, 32, 3)
    assert make("crafter-noreward", reward=True).unwrapped._game._reward is True


def test_unknown_argument_lists_those_there_are():
    with pytest.raises(TypeError, match=r"no argument 'size'; it has .*image_size"):
        make("crafter", size=32)


def test_mini_changes_what_the_table_says_and_arguments_go_before_it():
    schedule = make("toy/two-rooms", scale="mini").unwrapped.clock.schedule
    assert schedule.changes == find("toy/two-rooms").mini["schedule"]
    own = make("toy/two-rooms", scale="mini", schedule=((0, "object"),)).unwrapped.clock.schedule
    assert own.changes == ((0, "object"),)
    assert make("toy/count", scale="mini").unwrapped.length == 100
    with pytest.raises(ValueError, match="scale must be one of paper, mini, got 'tiny'"):
        make("toy/count", scale="tiny")


def test_environments_come_without_wrappers_that_hold_state():
    assert not isinstance(make("toy/count"), gymnasium.Wrapper)


def test_importing_the_package_imports_no_simulator():
    heavy = (
        "{'crafter', 'mujoco', 'dm_control', 'minigrid', 'torch', 'numba', 'curious_replay.replay'}"
    )
    code = f"import sys, curious_replay.envs; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", ["minigrid/lava", "minigrid/DoorKey-5x5", "minigrid/Any-Task"])
def test_a_world_whose_package_is_missing_says_how_to_get_it(name):
    code = f"""
import sys
sys.modules["minigrid"] = None  # as if it were not installed
from curious_replay import cli
from curious_replay.envs import find
assert find({name!r}).needs == ("minigrid",)  # a name is known all the same
sys.exit(cli.main(["envs", "show", {name!r}]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == (
        f"curious: {name} needs minigrid, which is not installed: "
        f"{extras.install_command('minigrid')}\n"
    )


def test_environments_know_neither_agents_nor_replay():
    foreign = ("torch", "curious_replay.replay", "curious_replay.agents", "curious_replay.run")
    files = list(Path(registry.__file__).parent.rglob("*.py"))
    assert len(files) > 10
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                imported = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in imported:
                assert not f"{name}.".startswith(tuple(f"{each}." for each in foreign)), file
