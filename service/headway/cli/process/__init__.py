"""What every role does as a process: logging, shutdown, heartbeat, options."""
