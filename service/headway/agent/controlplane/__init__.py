"""The agent's side of the control plane: calls, retries, enrolment, reports, isolation."""
