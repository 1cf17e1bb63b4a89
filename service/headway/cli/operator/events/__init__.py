"""What happened, in the order in which it did."""
