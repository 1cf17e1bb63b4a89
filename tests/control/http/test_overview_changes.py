"""What a browser makes of the stream of changes is the overview, as a whole one would have brought it."""

import copy
import json
import random
import shutil
import subprocess
from itertools import pairwise
from typing import Any

import pytest

from headway.control.http.overview.overview_changes import GROWING, KEYS, change
from headway.control.http.schemas.responses import HostOut, Overview, PoolOut, QueueOut
from support.tree import ROOT

CHANGES = ROOT / "service/headway/control/web/changes.js"
APPLY = f"""
import {{ readFileSync }} from "node:fs";
import {{ changed }} from {json.dumps(CHANGES.as_uri())};
const {{ first, changes }} = JSON.parse(readFileSync(0, "utf8"));
let overview = first;
const seen = changes.map((change) => (overview = changed(overview, change)));
console.log(JSON.stringify(seen));
"""


def applied(first: Any, changes: list[Any]) -> Any:
    """Each overview that the dashboard's own module makes, one after the other."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("needs node")
    given = json.dumps({"first": first, "changes": changes})
    command = [node, "--input-type=module", "-e", APPLY]
    return json.loads(subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout)


def row(name: str, key: str, rng: random.Random) -> dict[str, Any]:
    ages = {age: rng.choice([None, 0, 3]) for age in sorted(GROWING)}
    metrics = {"waiting_jobs": 1, "sampled_at_s": 90, "oldest_age_s": None}
    return {key: name, "state": "idle", "causes": [], "failures": None, "metrics": metrics, "labels": {}, **ages}


def moved(before: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """A later overview: rows come, go and change places, and fields change, or grow with the clock, or stand still."""
    after = copy.deepcopy(before)
    grown_s = rng.choice([0, 1, 5])
    after["at_s"] += grown_s
    if rng.random() < 0.3:
        after["health"] = {"status": rng.choice(["ok", "degraded"]), "reasons": ["why"][: rng.randint(0, 1)]}
    for name, key in KEYS.items():
        rows = after[name]
        for each in rows:
            move_row(each, rng, at_s=after["at_s"], grown_s=grown_s)
        if rng.random() < 0.3:
            rng.shuffle(rows)
        if rows and rng.random() < 0.3:
            rows.pop(rng.randrange(len(rows)))
        if rng.random() < 0.3:
            rows.insert(rng.randint(0, len(rows)), row(f"new {rng.random()}", key, rng))
    return after


def move_row(each: dict[str, Any], rng: random.Random, *, at_s: int, grown_s: int) -> None:
    for age in sorted(GROWING):
        each[age] = rng.choice([2, None] if each[age] is None else [each[age] + grown_s, each[age], 0, None])
    if rng.random() < 0.5:
        each["metrics"]["sampled_at_s"] = at_s
    if rng.random() < 0.1:
        each["causes"] = rng.choice([[], ["late", "no host"]])
        each["failures"] = rng.choice([None, {"share": 0.5}, {"share": None}])
        each["labels"] = rng.choice([{}, {"zone": "a"}, {"zone": "b"}, {"disk": "c"}])


@pytest.mark.parametrize("seed", range(3))
def test_changes_one_after_the_other_give_each_overview(seed: int) -> None:
    rng = random.Random(seed)
    overviews = [{"at_s": 100, "health": {"status": "ok", "reasons": []}, "hosts_wanted": []}]
    for name, key in KEYS.items():
        overviews[0][name] = [row(f"{name} {number}", key, rng) for number in range(5)]
    for _ in range(60):
        overviews.append(moved(overviews[-1], rng))
    changes = [change(before, after) for before, after in pairwise(overviews)]
    assert applied(overviews[0], json.loads(json.dumps(changes))) == overviews[1:]


def test_rows_that_change_alike_are_named_by_their_places() -> None:
    """1,000 queues of one poll cost as much as two."""
    before: dict[str, Any] = {"at_s": 100.0, "pools": [], "hosts": [], "decisions": []}
    before["queues"] = [{"queue": str(number), "metrics": {"sampled_at_s": 95.0}} for number in range(1000)]
    after = copy.deepcopy(before) | {"at_s": 105.0}
    for number, queue in enumerate(after["queues"]):
        if number != 500:
            queue["metrics"]["sampled_at_s"] = 104.0
    assert change(before, after) == {
        "at_s": 105.0,
        "queues": {"fields": [[{"metrics": {"sampled_at_s": 104.0}}, [0, 499, 501, 999]]]},
    }


def test_an_age_that_grows_with_the_clock_is_no_change_and_one_that_stands_still_is() -> None:
    before: dict[str, Any] = {"at_s": 100.0, "queues": [], "hosts": [], "decisions": []}
    before["pools"] = [{"pool": "a", "sample_age_s": 1.0}, {"pool": "b", "sample_age_s": 1.0}]
    after = copy.deepcopy(before) | {"at_s": 103.0}
    after["pools"][0]["sample_age_s"] = 4.0
    assert change(before, after) == {"at_s": 103.0, "pools": {"fields": [[{"sample_age_s": 1.0}, [1, 1]]]}}


def test_lists_and_ages_are_those_of_the_overview() -> None:
    rows = {name: PoolOut if name == "pools" else QueueOut for name in ("pools", "queues")}
    assert set(KEYS) < set(Overview.model_fields)
    assert all(KEYS[name] in model.model_fields for name, model in rows.items())
    assert KEYS["hosts"] in HostOut.model_fields
    assert set(PoolOut.model_fields) >= GROWING
    of_page = CHANGES.read_text(encoding="utf-8")
    assert all(f'{name}: "{key}"' in of_page for name, key in KEYS.items())
    assert all(f'"{age}"' in of_page for age in GROWING)
