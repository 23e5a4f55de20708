"""Report of a study as one HTML file: its contents as plain data, figures, template and style."""
