"""The training loop, and what takes its turns in it."""
