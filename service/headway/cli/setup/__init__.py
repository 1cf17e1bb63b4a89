"""`headway init`: what is found on this machine, and the files that are written for it."""
