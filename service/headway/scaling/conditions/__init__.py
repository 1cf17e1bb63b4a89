"""What can be true of an installation, its hosts and its pools: in one table, and when it becomes an incident."""
