"""How a study is computed: its trials, the executor of one process, the course from start to end."""
