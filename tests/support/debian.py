"""Programs of Debian packages, unpacked into a folder and never installed."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from support.tree import ROOT

FOLDER = ROOT / ".pytest_cache" / "debian"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def unpacked(release: str, *packages: str, finish: Callable[[Path], None] = lambda _: None) -> Path:
    """The root folder of ``packages`` of a Debian ``release``; it takes 5 s the first time. Then ``finish`` is called.

    The test is skipped where they cannot be had: without apt, without Debian's keys, or without its mirror.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg") is None or not KEYRING.exists():
        pytest.skip("needs apt-get, dpkg and Debian's keys to fetch packages")
    name = hashlib.sha256("\n".join((release, *packages)).encode()).hexdigest()[:16]
    folder = FOLDER / f"{release}-{name}"
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / f"{release}-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "whole").exists():
            shutil.rmtree(folder, ignore_errors=True)
            _unpack(release, packages, folder)
            finish(folder / "root")
            (folder / "whole").touch()
    return folder / "root"


def _mirror() -> str:
    """The mirror of Debian that this machine's own packages come from."""
    words = ["apt-get", "indextargets", "--format", "$(ORIGIN) $(REPO_URI)", "Created-By: Packages"]
    lines = subprocess.run(words, capture_output=True, text=True, timeout=60).stdout.split("\n")
    found = [uri for origin, _, uri in (line.partition(" ") for line in lines) if origin == "Debian"]
    mirrors = [uri for uri in found if uri.rstrip("/").endswith("/debian")]
    if not mirrors:
        pytest.skip("apt knows no mirror of Debian: `apt-get update` first")
    return mirrors[0]


def _unpack(release: str, packages: tuple[str, ...], folder: Path) -> None:
    for each in ("lists/partial", "cache/archives/partial", "packages", "root"):
        (folder / each).mkdir(parents=True)
    sources, options = folder / "sources.list", folder / "apt.conf"
    sources.write_text(f"deb [signed-by={KEYRING}] {_mirror()} {release} main\n")
    options.write_text(
        f'Dir::Etc::sourcelist "{sources}";\nDir::Etc::sourceparts "/dev/null";\nDir::State::lists "{folder}/lists";\n'
        f'Dir::Cache "{folder}/cache";\nAPT::Sandbox::User "";\nAcquire::Retries "2";\n'
    )
    env = {**os.environ, "APT_CONFIG": str(options)}
    for words in (("update",), ("download", *packages)):
        answer = subprocess.run(
            ["apt-get", "-qq", *words], cwd=folder / "packages", env=env, capture_output=True, text=True, timeout=200
        )
        if answer.returncode:
            pytest.skip(f"apt-get {words[0]} of Debian's {release} failed: {answer.stderr.strip()[-300:]}")
    for package in sorted((folder / "packages").glob("*.deb")):
        subprocess.run(["dpkg", "-x", package, folder / "root"], check=True, timeout=100)
    for each in ("lists", "cache", "packages"):
        shutil.rmtree(folder / each)
