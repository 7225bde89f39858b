"""Environments of a run, ours and the user's, and what they show at each step."""
