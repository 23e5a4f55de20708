"""From feature scores to a ranking, its stability and its files: numbers only."""
