"""The gRPC server: messages in, the core's values onward, messages out. It decides nothing."""
