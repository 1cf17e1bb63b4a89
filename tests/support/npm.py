"""Packages of npm, as a lock file pins them, in a folder of their own."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.tree import ROOT

FOLDER = ROOT / ".pytest_cache" / "npm"
INSTALLED_WITHIN_S = 200.0


def node_modules(project: Path) -> Path:
    """The folder ``node_modules`` of the ``package-lock.json`` in ``project``; it takes 3 s the first time.

    No script of a package runs. The test is skipped where they cannot be had: without npm, or without its registry.
    """
    if shutil.which("npm") is None:
        pytest.skip("needs npm")
    files = [project / name for name in ("package.json", "package-lock.json")]
    folder = FOLDER / hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:16]
    FOLDER.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for file in files:
                shutil.copy(file, folder)
            _install(folder)
            (folder / "whole").touch()
    return folder / "node_modules"


def _install(folder: Path) -> None:
    words = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--prefer-offline"]
    environment = {**os.environ, "npm_config_update_notifier": "false"}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=INSTALLED_WITHIN_S
    )
    if done.returncode:
        pytest.skip(f"npm ci failed: {(done.stderr or done.stdout).strip()[-300:]}")
