"""MiniGrid's tasks, and changing ones on its API."""
