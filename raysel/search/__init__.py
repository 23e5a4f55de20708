"""Which configurations are tried next: spaces, samplers, successive halving."""
