"""Reports jobs to the control plane. Light: it is installed beside other people's programs."""
