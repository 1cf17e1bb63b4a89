"""Python environments with the packages of others that cannot stand beside ours, made once and kept."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from support.tree import ROOT

UV = Path(sys.executable).with_name("uv")
FOLDER = ROOT / ".pytest_cache" / "environments"


def python_with(*requirements: str) -> Path:
    """The Python of an environment with ``requirements``, pinned ones; it takes seconds the first time."""
    name = hashlib.sha256("\n".join((sys.version, *requirements)).encode()).hexdigest()[:16]
    folder = FOLDER / name
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _uv("venv", "--python", sys.executable, str(folder))
            _uv("pip", "install", "--python", str(folder), *requirements)
            (folder / "whole").touch()
    return folder / "bin" / "python"


def _uv(*words: str) -> None:
    plain = {name: value for name, value in os.environ.items() if name != "VIRTUAL_ENV"}
    subprocess.run([UV, "--quiet", *words], env=plain, check=True, timeout=200)
