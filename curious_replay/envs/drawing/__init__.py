"""Cameras, textures and videos of simulated worlds."""
