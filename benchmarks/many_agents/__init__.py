"""Ten thousand agents, the control plane that answers them, and the leader that gives them work, for `agents.py`."""
