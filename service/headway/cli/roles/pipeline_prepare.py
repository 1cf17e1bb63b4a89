"""`headway pipeline prepare`: archives Spark's classes, so that each start of a pipeline takes a third less time."""

import os
import tempfile
from pathlib import Path

from headway.errors import Misconfigured
from headway_spark import class_archive
from headway_spark.java import java_home
from headway_spark.session import close, embedded
from headway_spark.stream.warm_up import warm_up

DUMP_BOUND_S = 300.0  # some 10 s on a core that does nothing else


def prepare(file: Path = class_archive.FILE) -> Path:
    """Run made-up events through the stream and archive the classes that this loads. Returns the archive.

    An older one is replaced once the new one is whole; pipelines that run with it go on.

    Raises:
        Misconfigured: this user may not write there, or this Java makes no archive.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".classes-", dir=file.parent) as folder:
            draft = Path(folder) / file.name
            _archive(draft, work_dir=Path(folder) / "work")
            if not draft.exists():
                raise Misconfigured(
                    "this Java archived no classes; it says why above, and pipelines start as before, only slower"
                )
            draft.chmod(0o644)  # whatever the umask: a pipeline that runs as another user reads it
            draft.replace(file)
    except OSError as error:
        raise Misconfigured(
            f"{file} cannot be written ({error.strerror}): run `headway pipeline prepare` as the user that installed "
            "Headway"
        ) from error
    return file


def _archive(draft: Path, *, work_dir: Path) -> None:
    work_dir.mkdir()
    session = embedded(
        java_home=java_home(os.environ, shim_dir=work_dir / "java"),
        work_dir=work_dir,
        jvm_options="-XX:TieredStopAtLevel=1",  # it ends before the thorough compiler pays
        classes=class_archive.made(draft),
    )
    try:
        warm_up(session, work_dir=work_dir, is_stopping=lambda: False)
    finally:
        close(session, bound_s=DUMP_BOUND_S)
