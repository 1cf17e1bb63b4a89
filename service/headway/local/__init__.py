"""What roles share on one machine: files that are whole at any moment, locks, and what ``/proc`` shows of processes."""
