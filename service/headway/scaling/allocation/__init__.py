"""Which pool gets how many workers where hosts are short of room, and when hosts change."""
