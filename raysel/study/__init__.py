"""Studies: definition and inputs, checks, inspection of data, drafts, cost and stored state."""
