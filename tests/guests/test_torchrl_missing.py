"""Without TorchRL, whoever asks for the sampler is told what to install, and nobody else is."""

import subprocess
import sys

import pytest

from curious_replay.extras import install_command

CODE = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name == {missing!r}:
            raise ModuleNotFoundError(name + " is not installed here", name=name)
sys.meta_path.insert(0, Refuse())
import curious_replay.replay
try:
    import curious_replay.torchrl
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("missing", ["torch", "torchrl"])
def test_what_to_install_is_said(missing):
    if missing == "torchrl":
        pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(missing=missing)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    needs = f"curious_replay.torchrl needs {missing}, which is not installed"
    assert done.stdout == f"{needs}: {install_command('torchrl')}\n"


def test_nothing_else_loads_torchrl():
    code = "import sys, curious_replay.replay; print({*sys.modules} & {'torch', 'torchrl'})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "set()\n"
