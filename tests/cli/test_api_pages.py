"""How the command line follows pages."""

from typing import Any

import pytest

from headway.cli import api_client
from headway.cli.api_client import Api


class Paged(Api):
    """One that gives a row a page, by number; ``pages`` of them, or for ever."""

    def __init__(self, pages: float) -> None:
        super().__init__("http://127.0.0.1:1", None)
        self._pages = pages

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        number = query.get("after", 0)
        return {"rows": [number], "next": number + 1 if number + 1 < self._pages else None}


def test_all_pages_are_one_answer() -> None:
    with Paged(3) as api:
        assert api.get_all("/v1/rows", "rows") == {"rows": [0, 1, 2], "next": None}


def test_an_answer_that_has_no_end_is_cut_off_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_client, "PAGES_MAX", 2)
    with Paged(float("inf")) as api:
        assert api.get_all("/v1/rows", "rows") == {"rows": [0, 1, 2], "next": 3}
