"""Small grids that change."""
