"""The report of a rehearsal: one HTML file that loads nothing from anywhere."""
