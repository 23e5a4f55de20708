"""Records of what was computed: the journal, the progress file and MLflow."""
