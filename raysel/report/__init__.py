"""What people look at: figures of a ranking and the progress of a study."""
