"""Settings of each agent: names, defaults, bounds and help, each in one place."""
