"""Studies: definition, checks, cost estimate, stored state, result and export."""
