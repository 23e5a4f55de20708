"""The distributed search: spaces, trials and the study that runs them on Ray."""
