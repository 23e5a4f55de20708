"""Output of the commands: the plan and the summary of a study."""
