"""What the process of an environment holds: there may be many of them."""

import subprocess
import sys

LOOK_INSIDE = """
import sys
from curious_replay.envs import registry
from curious_replay.run.worlds import environments

def look(name, *settings):
    assert "torch" not in sys.modules, "a worker has imported PyTorch"
    assert registry.find(name).module in sys.modules, "a worker was born without its environment"
    return made(name, *settings)

if __name__ == "__main__":
    from curious_replay.run.settings.env_base import EnvConfig
    made = environments.make_env
    environments.make_env = look  # sent to the workers as it is, and called there first
    registry.make("toy/count")  # in this process, which makes one too, it may well be imported
    environments.make_envs("toy/count", EnvConfig(), 2).close()
"""


def test_workers_share_their_environment_and_have_no_torch():
    subprocess.run([sys.executable, "-c", LOOK_INSIDE], check=True)
