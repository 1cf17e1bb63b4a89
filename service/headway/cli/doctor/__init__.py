"""`headway doctor`: what is wrong with an installation, as far as it can be seen from here, and what to do about it."""
