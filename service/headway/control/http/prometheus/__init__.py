"""``/metrics``: the overview as Prometheus samples."""
