"""Where Chromium is, by the names that distributions give it."""

import shutil

# The shell has no window to draw, and takes two thirds of the processor time.
CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium")
MISSING = "no Chromium is on the PATH: apt-get install chromium-headless-shell"
