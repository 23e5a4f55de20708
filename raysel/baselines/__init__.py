"""Methods that the solvers are compared with."""
