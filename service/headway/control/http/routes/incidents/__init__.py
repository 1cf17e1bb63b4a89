"""Incidents: what the leader found wrong, and what silences it."""
