"""World-model agents; each learns from batches of replayed steps and knows nothing of replay."""

from curious_replay.extras import require

require("curious_replay.agents", "torch")
