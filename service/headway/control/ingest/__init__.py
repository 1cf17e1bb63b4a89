"""Telemetry that comes in: validated, corrected, claimed once, appended to the event log."""
