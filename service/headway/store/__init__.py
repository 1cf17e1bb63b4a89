"""Postgres and the event log; all SQL."""
