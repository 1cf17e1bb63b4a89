"""The control plane's side of agents: enrolment, reports, assignments."""
