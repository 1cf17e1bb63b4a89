"""Tokens as roles read them: in files of their own."""

from pathlib import Path


def token_file(folder: Path, token: str, *, name: str = "token") -> str:
    """The path of a file in ``folder`` that holds ``token``."""
    file = folder / name
    file.write_text(f"{token}\n")
    return str(file)
