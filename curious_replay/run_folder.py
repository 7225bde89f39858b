"""Names of what is in a run folder, for those that write it and those that read it."""

import math
import re

CONFIG, META = "config.json", "meta.json"
METRICS, EPISODES = "metrics.jsonl", "episodes.jsonl"
SPEED, PROBE = "speed.jsonl", "probe.jsonl"
CHECKPOINTS, SNAPSHOTS, VIDEOS, EVENTS = "checkpoints", "snapshots", "videos", "events"
CHECKPOINT = re.compile(r"(\d{6,})-step-(\d+)")
"""A checkpoint's folder: its number and its step."""
REPLAY, STATE = "replay", "state.json"
"""What is in it for others to read: the saved buffer, and the state of the run."""
NOT_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
"""Numbers that JSON lacks, as they stand in the lines of a run."""


def checkpoint_name(serial: int, step: int) -> str:
    """Return the name of a checkpoint's folder, as `CHECKPOINT` reads it."""
    return f"{serial:06d}-step-{step}"
