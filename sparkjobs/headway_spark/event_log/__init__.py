"""The event log as Spark reads it: which files, their schema, their archive."""
