"""The dashboard's snapshot: pools, queues and health at this moment, and who watches it."""
