"""A device that is pretended, on which every agent is tried."""
