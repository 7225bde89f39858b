"""Running agents: the only package that knows the others."""
