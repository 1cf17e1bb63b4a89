"""How workers start: which may, how their processes are spawned and noted, and until when a start is watched."""
