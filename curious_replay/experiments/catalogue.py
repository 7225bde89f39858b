"""All experiments by name, and a user's own from a file."""

import difflib
import importlib
import importlib.util
import sys
from pathlib import Path

from curious_replay.experiments.experiment import Experiment

MODULES = (
    "object_interaction",
    "object_interaction_unchanging",
    "object_interaction_ablations",
    "td_adversarial",
    "assay_hyperparameters",
    "cleared_buffer",
    "forgetting",
    "constrained_control",
    "crafter",
    "crafter_ablations",
    "crafter_hyperparameters",
    "train_frequency",
    "crafter_unsupervised",
    "crafter_sampling",
    "crafter_training_count",
    "crafter_progress",
    "control_suite",
    "random_background",
    "background_swap",
    "toy_mirror",
)
"""In the order in which they are listed."""


def experiments() -> dict[str, Experiment]:
    """All that come with the package, by name."""
    modules = [importlib.import_module(f"{__package__}.{module}") for module in MODULES]
    return {module.EXPERIMENT.name: module.EXPERIMENT for module in modules}


def find(name: str) -> Experiment:
    """An experiment by its name, or the `EXPERIMENT` of a Python file of the user's own."""
    if name.endswith(".py"):
        return _own(Path(name))
    known = experiments()
    if name in known:
        return known[name]
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.4)
    advice = f"did you mean {', '.join(near)}?" if near else "`curious experiments` lists all"
    raise ValueError(f"unknown experiment {name!r}; {advice}")


def _own(path: Path) -> Experiment:
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    found = getattr(module, "EXPERIMENT", None)
    if not isinstance(found, Experiment):
        raise ValueError(f"{path} must define EXPERIMENT, a curious_replay Experiment")
    return found
