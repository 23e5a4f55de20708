"""Result of a study: its scores, ranking and limitations, and the files that tell them."""
