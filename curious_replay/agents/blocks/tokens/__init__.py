"""Blocks of agents that see pictures as tokens."""
