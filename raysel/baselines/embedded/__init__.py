"""Feature selectors that learn their scores as part of a model: regressions and discriminant analysis."""
