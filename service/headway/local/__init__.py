"""What roles share on one machine: whole files, locks, what ``/proc`` shows of processes, and pauses that double."""
