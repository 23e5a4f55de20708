"""What the commands print: the plan and the summary."""
