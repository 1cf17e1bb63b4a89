"""Every role on this machine: ``up``, its data folder, supervisor, backup and restore."""
