"""Multi-task discriminant analysis and its variants."""
