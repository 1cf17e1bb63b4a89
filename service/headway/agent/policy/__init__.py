"""Which of the starts and replacements that are due are made now."""
