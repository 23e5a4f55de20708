"""Feature rankings: ranks and stability from feature scores, and their files."""
