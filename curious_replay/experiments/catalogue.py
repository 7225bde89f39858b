"""All experiments by name, and a user's own from a file."""

import difflib
import importlib
import importlib.util
import sys
from pathlib import Path

from curious_replay.errors import UsageError
from curious_replay.experiments.experiment import Experiment
from curious_replay.experiments.miniatures import MINIATURES, QUICK

MODULES = (
    "assay.object_interaction",
    "assay.object_interaction_unchanging",
    "assay.object_interaction_ablations",
    "assay.td_adversarial",
    "assay.assay_hyperparameters",
    "assay.cleared_buffer",
    "assay.forgetting",
    "control.constrained_control",
    "crafter.crafter",
    "crafter.crafter_ablations",
    "crafter.crafter_hyperparameters",
    "crafter.train_frequency",
    "crafter.crafter_unsupervised",
    "crafter.crafter_sampling",
    "crafter.crafter_training_count",
    "crafter.crafter_progress",
    "control.control_suite",
    "control.random_background",
    "control.background_swap",
    "control.toy_mirror",
)
"""Those of the paper, in the order in which they are listed."""
GROUP = "miniatures"
"""Stands for all of them."""
OWN: dict[str, Experiment] = {}
"""Those of the user's own, by name."""


def register_experiment(experiment: Experiment) -> None:
    """Make an experiment known to `curious sweep` and `curious experiments` by its name."""
    name = experiment.name
    if name == GROUP or experiments().get(name, experiment) is not experiment:
        raise UsageError(f"there is an experiment {name!r} already: choose another name")
    OWN[name] = experiment


def experiments() -> dict[str, Experiment]:
    """Return all experiments by name, those of the package first."""
    modules = [importlib.import_module(f"{__package__}.{module}") for module in MODULES]
    found = [*(module.EXPERIMENT for module in modules), *MINIATURES, *OWN.values()]
    return {experiment.name: experiment for experiment in found}


def several(name: str, quick: bool = False) -> tuple[Experiment, ...]:
    """Return the experiments that a name stands for.

    These are all miniatures, the quick ones among them, or one.
    """
    if name == GROUP:
        return QUICK if quick else MINIATURES
    if quick:
        raise UsageError(f"--quick is for {GROUP}, got {name!r}")
    return (find(name),)


def find(name: str) -> Experiment:
    """Return an experiment by its name, or the `EXPERIMENT` of a Python file of the user's own."""
    if name.endswith(".py"):
        return _own(Path(name))
    known = experiments()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, [*known, GROUP], n=3, cutoff=0.4)
    advice = f"did you mean {', '.join(near)}?" if near else "`curious experiments` lists all"
    raise UsageError(f"unknown experiment {name!r}; {advice}")


def _own(path: Path) -> Experiment:
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    found = getattr(module, "EXPERIMENT", None)
    if not isinstance(found, Experiment):
        raise UsageError(f"{path} must define EXPERIMENT, a curious_replay Experiment")
    return found
