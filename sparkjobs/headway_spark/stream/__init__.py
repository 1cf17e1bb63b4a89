"""The stream: event log to buckets to a sink, with its checkpoint."""
