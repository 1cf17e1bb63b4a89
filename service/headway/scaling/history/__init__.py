"""What earlier days and weeks predict for the next hour."""
