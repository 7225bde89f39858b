"""What several miniatures share: kinds of replay, policies that learn nothing, measures, rungs."""
