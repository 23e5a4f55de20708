"""Multi-task discriminant analysis."""
