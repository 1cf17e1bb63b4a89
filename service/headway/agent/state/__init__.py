"""The agent's state folder, and the lock by which one agent owns it."""
