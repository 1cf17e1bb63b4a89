"""What tells the control plane of jobs. Light: it is installed beside other people's programs."""
