"""What the host's owner writes: ``host.toml``, templates of workers, and the systemd unit."""
