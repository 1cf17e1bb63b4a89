"""The rehearsal itself: pools, workers, hosts and faults on a virtual clock."""
