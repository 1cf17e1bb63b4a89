"""A micro-batch, as the sink gets it."""


class Progress:
    """A micro-batch as the pipeline reports it."""

    batch_id, batch_s, newest_received_at_s = 1, 0.1, None
