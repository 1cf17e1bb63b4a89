"""What buckets and samples add up to: rates, windows, failures, errors of predictions."""
