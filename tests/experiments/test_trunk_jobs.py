"""Which runs an experiment with a trunk has: what is shared, what differs, and their names."""

from dataclasses import replace

import pytest

from curious_replay.experiments import listing, rows
from curious_replay.experiments.experiment import (
    Claim,
    Experiment,
    Measure,
    Method,
    Registration,
    Trunk,
    each,
)
from curious_replay.experiments.jobs import jobs, with_trunks
from curious_replay.experiments.rows import row
from curious_replay.run.settings.agents import AGENTS
from curious_replay.run.settings.replay_config import REPLAYS

UNIFORM = Method("uniform", "dreamerv3", "uniform")
CURIOUS = Method("curious", "dreamerv3", "curious", {"replay.beta": 0.3, "train.ratio": 128.0})
CHANGES = ((0, "straight"), (800, "mirrored"))
WHOLE = Experiment(
    name="mine",
    where="of my own",
    title="A title",
    tasks=("toy/mirror",),
    methods=(UNIFORM, CURIOUS),
    measures=(Measure("length", each(lambda run: run.steps_done)),),
    claim=Claim("curious is better", [("curious", "uniform")]),
    seeds=2,
    trunk=Trunk(until={"mini": 1000, "debug": 70}),
)


def experiment(**changes):
    return replace(WHOLE, **changes)


def test_one_trunk_for_each_seed():
    made = jobs(WHOLE, "mini")
    trunk = "toy-mirror-dreamerv3-uniform-train.steps=1000-seed={}"
    curious = (
        "toy-mirror-dreamerv3-curious-replay.beta=0.3-train.ratio=128.0-from=uniform-1000"
        "-from.train.ratio=64.0-seed={}"
    )
    assert [job.name for job in with_trunks(made)] == [
        trunk.format(0),
        "toy-mirror-dreamerv3-uniform-from=uniform-1000-seed=0",
        curious.format(0),
        trunk.format(1),
        "toy-mirror-dreamerv3-uniform-from=uniform-1000-seed=1",
        curious.format(1),
    ]
    assert [job.trunk.config.train.ratio for job in made] == [64] * 4
    assert {job.trunk.config.record.keep_at for job in made} == {(1000,)}


def test_what_cannot_change_at_a_fork_is_the_trunks_too():
    large = replace(CURIOUS, name="large", settings={"replay.beta": 0.3, "env.room": 5})
    made = jobs(experiment(methods=(UNIFORM, CURIOUS, large)), "mini", 1)
    first, second, third = (job.trunk for job in made)
    assert first.name == second.name
    assert third.name == "toy-mirror-dreamerv3-uniform-env.room=5-train.steps=1000-seed=0"
    other = replace(UNIFORM, name="other", agent="dreamerv2")
    assert len(with_trunks(jobs(experiment(methods=(CURIOUS, UNIFORM, other)), "mini", 1))) == 5


def test_experiments_with_the_same_trunk_share_it():
    one, other = experiment(methods=(UNIFORM,), claim=Claim("", [])), experiment(name="other")
    both = with_trunks([*jobs(one, "mini", 1), *jobs(other, "mini", 1)])
    assert len(both) == 3
    later = experiment(trunk=Trunk(until=1001))
    assert not {job.name for job in with_trunks(jobs(later, "mini", 1))} & {*map(name_of, both)}


def name_of(job):
    return job.name


def test_branches_are_named_by_how_their_trunk_differs():
    often = replace(CURIOUS, settings={"train.ratio": 32.0})
    rarely, small = {"train.ratio": 32.0}, {"replay.capacity": 4000}
    made = [
        job
        for each in (
            WHOLE,
            experiment(trunk=Trunk("count", 1000)),
            experiment(trunk=Trunk("count", 1000, {"replay.beta": 0.3})),
            experiment(trunk=Trunk(until=1000, settings=rarely)),
            experiment(trunk=Trunk(until=1000, settings=rarely), methods=(UNIFORM, often)),
            experiment(settings={"mini": rarely}),
            experiment(settings={"mini": small}),
        )
        for job in jobs(each, "mini", 1)
    ]
    by_name = {}
    for job in made:
        told = str((job.config, job.trunk.config))
        assert by_name.setdefault(job.name, told) == told, job.name
    assert len({*by_name.values()}) == len(by_name) == 12  # two are the same in two of them
    beginnings = {name.partition("-from=")[2] for name in by_name if "-uniform-from" in name}
    assert beginnings == {
        "uniform-1000-seed=0",
        "uniform-1000-from.train.ratio=32.0-seed=0",
        "count-1000-seed=0",
        "count-1000-from.replay.beta=0.3-seed=0",
    }


def test_the_end_of_a_trunk_may_depend_on_the_scale_or_be_the_change():
    by_scale = experiment(trunk=Trunk(until={"mini": 700, "debug": 70}))
    assert jobs(by_scale, "mini")[0].trunk.config.train.steps == 700
    assert jobs(by_scale, "debug")[0].trunk.config.train.steps == 70
    with pytest.raises(ValueError, match=r"ends at .*'debug': 70.* no step for paper"):
        jobs(by_scale, "paper")
    changing = experiment(trunk=Trunk(), settings={"mini": {"env.schedule": CHANGES}})
    assert jobs(changing, "mini")[0].trunk.config.train.steps == 800
    assert jobs(changing, "debug")[0].trunk.config.train.steps == 60  # by its own schedule
    two = experiment(trunk=Trunk(), settings={"mini": {"env.schedule": CHANGES, "env.num_envs": 2}})
    assert jobs(two, "mini")[0].trunk.config.train.steps == 1600
    with pytest.raises(ValueError, match=r"toy/mirror first changes, but --env.schedule in the "):
        jobs(changing, "paper")


@pytest.mark.parametrize("until", [0, 4500, 9000])
def test_a_trunk_ends_before_its_branches(until):
    with pytest.raises(ValueError, match=rf"must end before .* at step 4500 .*, got {until}"):
        jobs(experiment(trunk=Trunk(until=until)), "mini")


@pytest.mark.parametrize("settings", [{"env.room": 5}, {"replay.capacity": 4000}])
def test_a_trunk_whose_branches_could_not_go_on_is_refused(settings):
    name = next(iter(settings))
    with pytest.raises(ValueError, match=rf"--{name} is \d+ in the trunk and cannot be \d+ in its"):
        jobs(experiment(trunk=Trunk(until=1000, settings=settings)), "mini")


def test_a_trunk_is_paid_once():
    whole = jobs(experiment(trunk=None), "mini", 1)
    parts = jobs(WHOLE, "mini", 1)
    trunk = parts[0].trunk
    assert trunk.updates == 1 + (1000 - 200) * 64 // 128
    assert trunk.updates + parts[0].updates == whole[0].updates
    assert parts[1].updates == (4500 - 1000) * 128 // 128
    found = listing.cost([WHOLE, experiment(name="again")], "mini", 1)
    assert (found.runs, found.updates) == (3, trunk.updates + parts[0].updates + parts[1].updates)


def test_every_kind_of_replay_can_branch_off():
    arms = [row("plan2explore-v3", replay) for replay in REPLAYS]
    arms += [
        row("plan2explore-v3", "balanced", "half", {"replay.novelty": 0.5}),
        row("plan2explore-v3", "curious", "no repeats", {"replay.repeats": False}),
    ]
    mine = experiment(
        tasks=("object-interaction",),
        methods=tuple(arms),
        claim=Claim("", [("Plan2Explore V3 CR", "Plan2Explore V3")]),
        trunk=Trunk(until=20_000),
    )
    trunk, *branches = with_trunks(jobs(mine, "mini", 1))
    assert trunk.name == "object-interaction-plan2explore-v3-uniform-train.steps=20000-seed=0"
    assert len(branches) == len({job.method.name for job in branches}) == len(REPLAYS) + 2
    assert branches[-1].name == (
        "object-interaction-plan2explore-v3-curious-replay.repeats=False-from=uniform-20000-seed=0"
    )


def test_every_agent_and_replay_has_a_name_in_tables():
    ours = {name for name, agent in AGENTS.items() if agent.config.__module__.startswith("curious")}
    assert rows.AGENTS.keys() == ours  # other tests may have added their own
    assert rows.REPLAYS.keys() == REPLAYS.keys()


def test_registered_seeds_are_run_unless_others_are_asked_for():
    mine = experiment(seeds=7, registered=Registration("2026-01-31"))
    assert [job.config.seed for job in jobs(mine, "mini")[::2]] == [*range(100, 107)]
    assert [job.config.seed for job in jobs(mine, "mini", 2, first_seed=0)[::2]] == [0, 1]
    assert [job.config.seed for job in jobs(mine, "debug")] == [0, 0]


def test_the_trunk_is_told_in_the_listing(monkeypatch):
    here = experiment(scales=("mini", "debug"))
    monkeypatch.setattr(listing, "experiments", lambda: {"mine": here})
    made = listing.markdown()
    assert f"| [mine](#mine) | of my own | – | {listing.cost([here], 'mini')} |" in made
    assert "All methods go on from the same run of each seed, which has uniform replay" in made
