"""World-model agents; each learns from batches of replayed steps and knows nothing of replay."""
