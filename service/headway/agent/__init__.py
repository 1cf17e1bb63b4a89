"""The agent of one host: it starts, watches and stops worker processes."""
