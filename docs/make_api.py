"""Writes docs/api.md: what `import curious_replay` offers, from signatures and docstrings.

    python docs/make_api.py

A test compares the page with the code.
"""

import inspect
import textwrap
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import curious_replay as cr

PAGE = Path(__file__).with_name("api.md")
GROUPS = {
    "Replay": (
        "ReplayBuffer", "Batch", "SavedBuffer", "Rule", "Curious", "Balanced", "Count",
        "Adversarial", "TemporalDifference", "Uniform", "Mixture",
    ),
    "Environments": ("make", "make_vector", "Schedule", "Switch"),
    "Agents": ("Agent", "Feedback", "Spaces"),
    "Runs": (
        "Choice", "preset", "Config", "train", "fork", "load_agent", "evaluate", "load_run",
        "UsageError",
    ),
    "Your own": ("register_rule", "register_agent", "register_env", "register_experiment"),
}  # fmt: skip
EXAMPLES = {
    "ReplayBuffer": """
        buffer = cr.ReplayBuffer(capacity=1000, length=4, num_envs=2, rule=cr.Curious())
        flags = dict.fromkeys(("is_first", "is_last", "is_terminal"), np.zeros(2, bool))
        for _ in range(8):
            buffer.add({"image": np.zeros((2, 8, 8, 3), np.uint8), **flags})
        batch = buffer.sample(16)  # {"image": uint8 [16, 4, 8, 8, 3], ...}
        buffer.update(batch.ids, {"model": np.ones((16, 4))})
    """,
    "Batch": """
        assert batch["image"].shape == (16, 4, 8, 8, 3) and batch.ids.shape == (16, 4)
        tensors = batch.torch()  # {"image": uint8 [16, 4, 8, 8, 3], ...}, in the same memory
    """,
    "SavedBuffer": """
        buffer.save(folder / "replay")
        visits = cr.SavedBuffer(folder / "replay").visits  # int64 [N]
    """,
    "Rule": """
        priorities = cr.Curious()(np.array([0, 3]), {"model": np.array([1.0, 2.0])})  # [2]
    """,
    "Curious": """
        rule = cr.Curious(beta=0.7, alpha=0.7, dialect="dv3")
    """,
    "Balanced": """
        buffer.rule = cr.Balanced(novelty=0.3)
    """,
    "Count": """
        rule = cr.Count(c=1e4, beta=0.7)
    """,
    "Adversarial": """
        rule = cr.Adversarial(signal="kl")
    """,
    "TemporalDifference": """
        rule = cr.TemporalDifference(alpha=0.7)
    """,
    "Uniform": """
        buffer.rule = cr.Uniform()
    """,
    "Mixture": """
        rule = cr.Mixture(cr.Adversarial(), cr.TemporalDifference(), fraction=0.5)
    """,
    "make": """
        env = cr.make("toy/two-rooms", scale="mini", image_size=32)
        observation, info = env.reset(seed=0)  # {"image": uint8 [32, 32, 3]}
    """,
    "make_vector": """
        envs = cr.make_vector("toy/count", 2, processes=False)
        observations, infos = envs.reset(seed=0)  # {"image": uint8 [2, 64, 64, 3]}
        envs.close()
    """,
    "Schedule": """
        schedule = cr.Schedule(((0, "empty"), (20_000, "ball")))
        assert schedule.at(30_000) == "ball"
    """,
    "Switch": """
        worlds = {
            "small": lambda: cr.make("toy/two-rooms", room=5),
            "large": lambda: cr.make("toy/two-rooms", room=7),
        }
        env = cr.Switch(worlds, ((0, "small"), (20_000, "large")))
    """,
    "Agent": """
        class Still(cr.Agent):
            start = act = update = open_loop = None  # docs/extending.md has a whole one
    """,
    "Feedback": """
        feedback = cr.Feedback({"model": np.ones((16, 64), np.float32)}, {"model/loss": 1.0})
    """,
    "Spaces": """
        spaces = cr.Spaces(actions=4, discrete=True, image=(64, 64))
    """,
    "Choice": """
        choice = cr.Choice(env="toy/count", agent="dreamerv3", replay="curious", scale="debug")
    """,
    "preset": """
        config = cr.preset(choice, seed=1)
        config = replace(config, train=replace(config.train, steps=20, prefill=20, threads=1))
    """,
    "Config": """
        assert cr.Config.from_json(config.to_json()) == config
    """,
    "train": """
        outcome = cr.train(config, folder / "run")
        assert outcome.finished
    """,
    "fork": """
        made = cr.fork(
            folder / "run", logdir=folder / "fork", replay="uniform", settings={"train.steps": 30}
        )
        cr.train(made, folder / "fork", resume=True)
    """,
    "load_agent": """
        saved = cr.load_agent(folder / "run")
    """,
    "evaluate": """
        episodes = cr.evaluate(saved, episodes=2)
        print([episode.values["return"] for episode in episodes])
    """,
    "load_run": """
        run = cr.load_run(folder / "run")
        print(run.metrics["step"], run.setting("replay.alpha"))
    """,
    "UsageError": """
        try:
            cr.preset(cr.Choice(agent="dreamer"))
        except cr.UsageError as error:
            print(error)  # --agent must be one of dreamerv3, ...
    """,
    "register_rule": """
        cr.register_rule("mine", cr.Count)  # --replay mine --replay.beta 0.5
    """,
    "register_agent": """
        from curious_replay.agents.configs.dreamer_v3 import DreamerV3Config

        cr.register_agent("mine", DreamerV3Config, "curious_replay.agents.dreamer_v3:DreamerV3")
    """,
    "register_env": """
        cr.register_env("count", "curious_replay.envs.toys.toy:CountingWorld")
        env = cr.make("count", length=5)
    """,
    "register_experiment": """
        from curious_replay.experiments.control import toy_mirror

        cr.register_experiment(replace(toy_mirror.EXPERIMENT, name="mirror-again", seeds=3))
    """,
}
INTRODUCTION = """# API reference

What `import curious_replay as cr` offers. Names are imported when they are first used. This page is
written by `docs/make_api.py` from the code. Its examples are run in order by a test, with `folder`
a new folder, `import numpy as np` and `from dataclasses import replace`. [Replay](replay.md),
[training](training.md) and [extending](extending.md) explain how things belong together.
"""


def example(name: str) -> str:
    """Return the code that shows how a name is used."""
    return textwrap.dedent(EXAMPLES[name]).strip()


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        parts += [_entry(name, getattr(cr, name)) for name in names]
    return "\n".join(parts)


def _entry(name: str, thing: Any) -> str:
    text = [f"### {name}\n", f"```text\n{_signature(name, thing)}\n```\n"]
    text.append(f"```text\n{inspect.getdoc(thing)}\n```\n")
    methods = _methods(thing) if isinstance(thing, type) else {}
    text += [f"- `{each}`: {_first_line(kind)}" for each, kind in methods.items()]
    text.append(("\n" if methods else "") + f"```python\n{example(name)}\n```\n")
    return "\n".join(text)


def _signature(name: str, thing: Any) -> str:
    """Return how a thing is called, without the types, which its description gives in words."""
    if isinstance(thing, type) and issubclass(thing, Exception):
        return f"cr.{name}(message)"
    signature = inspect.signature(thing)
    shown = [_plain(parameter) for parameter in signature.parameters.values()]
    star = [i for i, p in enumerate(signature.parameters.values()) if p.kind is p.KEYWORD_ONLY]
    if star:
        shown.insert(star[0], "*")
    return f"cr.{name}({', '.join(shown)})"


def _plain(parameter: inspect.Parameter) -> str:
    default = parameter.default
    if default is parameter.empty:
        return str(parameter).partition(":")[0]
    simple = isinstance(default, int | float | str | tuple | None) or is_dataclass(default)
    return f"{parameter.name}={default!r}" if simple else f"{parameter.name}=..."


def _methods(kind: type) -> dict[str, Any]:
    """Return public methods and properties of a class of this package, in the order of the code."""
    ours = [each for each in reversed(kind.__mro__) if each.__module__.startswith(cr.__name__)]
    found = {name: value for each in ours for name, value in vars(each).items()}
    kept = (property, classmethod, type(_methods))
    return {
        name: value
        for name, value in found.items()
        if not name.startswith("_") and isinstance(value, kept) and inspect.getdoc(value)
    }


def _first_line(value: Any) -> str:
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ").replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
