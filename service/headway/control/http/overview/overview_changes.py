"""What differs between two overviews, as the stream of changes sends it: the fields of rows, and not the rows.

Most of an overview stays as it was from one to the next, and what moves often moves alike: a thousand queues that were
read in one poll have one new ``sampled_at_s``. Rows whose change is the same are therefore named together, by their
places.
"""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

KEYS = {"pools": "pool", "queues": "queue", "hosts": "host_id", "decisions": "decision_id"}
"""The lists whose rows are compared one by one, and the field that names a row."""

GROWING = frozenset({"reported_age_s", "sample_age_s", "measured_age_s"})
"""Ages of a row. Where one has grown by what ``at_s`` has, it is left out: whoever applies a change adds that."""

GROWN_WITHIN_S = 1e-4

Json = Mapping[str, Any]


def change(before: Json, after: Json) -> dict[str, Any]:
    """What turns the overview ``before`` into ``after``; it always has ``at_s``.

    ``fields`` are those of the overview itself. A list that differs has ``order`` (the names of its rows) unless that
    is as before, ``rows`` (whole: those that are new) and ``fields``: pairs of changed fields and of the places of rows
    that they are set in, as first and last ones of ranges. An object among changed fields changes those it has.
    """
    grown_s = after["at_s"] - before["at_s"]
    changed: dict[str, Any] = {"at_s": after["at_s"]}
    fields = {name: value for name, value in after.items() if name not in {*KEYS, "at_s"} and before.get(name) != value}
    if fields:
        changed["fields"] = fields
    for name, key in KEYS.items():
        of_list = _of_list(before[name], after[name], key=key, grown_s=grown_s)
        if of_list:
            changed[name] = of_list
    return changed


def _of_list(before: list[Json], after: list[Json], *, key: str, grown_s: float) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    order = [row[key] for row in after]
    if order != [row[key] for row in before]:
        changed["order"] = order
    known = {row[key]: row for row in before}
    whole, alike = [], dict[str, list[int]]()
    for place, row in enumerate(after):
        fields = _fields(known[row[key]], row, grown_s=grown_s) if row[key] in known else None
        if fields is None:
            whole.append(row)
        elif fields:
            alike.setdefault(json.dumps(fields), []).append(place)
    if whole:
        changed["rows"] = whole
    if alike:
        changed["fields"] = [[json.loads(fields), _ranges(places)] for fields, places in alike.items()]
    return changed


def _fields(before: Json, after: Json, *, grown_s: float) -> dict[str, Any] | None:
    """The fields that differ; ``None`` where the two have other fields, so that no change of fields could say it."""
    if before.keys() != after.keys():
        return None
    changed: dict[str, Any] = {}
    for name, value in after.items():
        was = before[name]
        if _is_grown(was, value, grown_s) if name in GROWING else was == value:
            continue
        if isinstance(was, dict) and isinstance(value, dict):
            inner = _fields(was, value, grown_s=grown_s)
            if inner is None:
                return None
            changed[name] = inner
        else:
            changed[name] = value
    return changed


def _is_grown(was: float | None, value: float | None, grown_s: float) -> bool:
    if was is None or value is None:
        return was is value
    return abs(value - was - grown_s) < GROWN_WITHIN_S


def _ranges(places: list[int]) -> list[int]:
    """The first and the last of each run of neighbours, one after the other."""
    ends = [place for one, other in pairwise(places) if other != one + 1 for place in (one, other)]
    return [places[0], *ends, places[-1]]
