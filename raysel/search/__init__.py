"""Search for configurations: grids and samples, samplers, successive halving."""
