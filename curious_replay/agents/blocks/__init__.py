"""What the agents are built from, one idea a file."""
