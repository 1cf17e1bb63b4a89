"""When jobs entered their queues whose messages carry no time."""
