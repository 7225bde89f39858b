"""What runs tell: every measure of the paper, computed from run folders alone.

Each measure is a function on plain arrays with its definition in the docstring. Nothing here needs
an agent or a simulator.

    load, stored     a run folder as arrays; the steps in its replay checkpoint
    stats            means, tests, intervals
    interaction, model_error, returns, crafter, replay_probe   the measures
    chart, plots     figures
"""

from curious_replay.extras import require

require("curious_replay.analysis", "scipy")
