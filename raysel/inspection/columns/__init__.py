"""Single columns: what each has to do with the label, and with the order of the rows."""
