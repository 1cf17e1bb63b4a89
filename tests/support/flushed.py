"""What is flushed to the disk, and before what: the only sign of a guard that nothing but a loss of power tests."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


class Disk:
    """Notes each flush, rename and removal, and does it."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.done: list[str] = []
        for name in ("rename", "replace"):
            patch.setattr(os, name, self._noted(getattr(os, name), lambda _, to: f"name {Path(to).name}"))
        patch.setattr(os, "fsync", self._noted(os.fsync, lambda opened: f"flush {_name(opened)}"))
        patch.setattr(os, "unlink", self._noted(os.unlink, lambda path: f"remove {Path(path).name}"))

    def take(self) -> list[str]:
        """What was done since the last call."""
        done, self.done = self.done, []
        return done

    def _noted(self, act: Callable[..., Any], word: Callable[..., str]) -> Callable[..., Any]:
        def noted(*given: Any, **more: Any) -> Any:
            answer = word(*given)
            result = act(*given, **more)
            self.done.append(answer)
            return result

        return noted


def _name(opened: Any) -> str:
    number = opened if isinstance(opened, int) else opened.fileno()
    return Path(f"/proc/self/fd/{number}").readlink().name
