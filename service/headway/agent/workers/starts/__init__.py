"""How workers start: which kinds may, how a process is spawned, and until when a start is watched."""
