"""Curious Replay: world-model agents that adapt when their world changes."""

__version__ = "0.1.0"
