"""Reports on what was recorded: `headway report`."""
