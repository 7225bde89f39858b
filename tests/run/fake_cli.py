"""`curious`, with the fake agent among the agents: python -m tests... as a script."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers import fake_agent  # noqa: F401  # makes the agent known

from curious_replay import cli

if __name__ == "__main__":
    sys.exit(cli.main())
