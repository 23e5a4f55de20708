"""Reading of model files: checks before skops reads one, and names of earlier versions."""
