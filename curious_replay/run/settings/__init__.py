"""What can be chosen: groups of settings with their bounds, presets, agents and rules by name."""
