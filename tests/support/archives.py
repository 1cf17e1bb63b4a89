"""Archives that tests unpack."""

import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path


@contextmanager
def open_tar(source: Path | bytes) -> Iterator[tarfile.TarFile]:
    """An archive that puts nothing outside the folder it is unpacked in, where this Python has such a rule.

    Debian 12's Python 3.11.2 knows no ``filter="data"``.
    """
    content = source if isinstance(source, bytes) else source.read_bytes()
    with tarfile.open(fileobj=BytesIO(content)) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        yield archive
