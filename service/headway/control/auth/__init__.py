"""Who calls: credentials, failed sign-ins, certificates, the installation's own CA."""
