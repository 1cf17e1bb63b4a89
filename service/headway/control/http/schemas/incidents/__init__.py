"""What requests about incidents say."""
