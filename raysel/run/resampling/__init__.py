"""Work on a finished study that repeats its computation on other samples or labels."""
