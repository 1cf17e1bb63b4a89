"""The event log, and the claims on its batches."""
