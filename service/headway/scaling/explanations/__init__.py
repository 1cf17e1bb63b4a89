"""What people read in place of a decision's names and numbers."""
