"""Gymnasium environments, many of which change while the agent learns."""
