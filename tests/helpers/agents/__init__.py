"""Small agents, and batches for them."""
