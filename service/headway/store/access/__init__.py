"""Who may call: credentials, tokens, enrolment of hosts."""
