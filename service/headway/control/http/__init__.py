"""The HTTP API: requests in, the core's values onward, answers out. It decides nothing."""
