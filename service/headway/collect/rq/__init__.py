"""RQ in Redis or Valkey, read with commands that change nothing. RQ itself is not needed."""
