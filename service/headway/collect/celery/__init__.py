"""Celery on Redis or Valkey, read with commands that change nothing. Celery itself is not needed."""
