"""Groups in files and at the control plane: read, compared with profiles, applied, shown and deleted."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from headway.__main__ import main
from headway.cli.operator.apply import apply_profiles
from headway.cli.profiles_file import load_profiles_file
from headway.errors import Invalid
from headway.scaling.group import Group
from headway.scaling.profile import Profile
from support.seed import Seed
from support.served import TOKEN, Served, profiles_file

POOLS = "pools:\n  mail: {queues: [redis/mail], template: rq}\n  news: {queues: [redis/news], template: rq}\n"
TEXT = POOLS + "groups:\n  database: {workers_max: 6, pools: [news, mail]}\n"
DATABASE = Group(name="database", workers_max=6, pools=("mail", "news"))


def test_groups_are_read_beside_the_pools(tmp_path: Path) -> None:
    text = TEXT + "  licences: {slots_max: 8, pools: [mail]}\n"
    found = load_profiles_file(Path(profiles_file(tmp_path, text)))
    assert found.groups == (DATABASE, Group(name="licences", slots_max=8, pools=("mail",)))


def test_every_mistake_of_groups_is_named_at_once(tmp_path: Path) -> None:
    text = """
pools:
  mail: {queues: [redis/mail], template: rq, workers_min: 7}
  news: {queues: [redis/news], template: rq, pinned: 8}
  jobs: {queues: [redis/jobs], template: rq, colour: red}
groups:
  database: {workers_max: 6, pools: [mail, news, moved, jobs]}
  sum: {workers_max: 14, pools: [mail, news]}
  none: {pools: [mail]}
  both: {workers_max: 1, slots_max: 1, pools: [mail, mail]}
  7: {workers_max: 1, pools: [mail]}
"""
    with pytest.raises(Invalid) as refused:
        load_profiles_file(Path(profiles_file(tmp_path, text)))
    said = "\n".join(refused.value.breaches)
    for sentence in (
        "unknown key 'colour'",
        "group 'database': pool 'moved' has no profile",
        "group 'database': pool 'mail': workers_min=7 exceeds workers_max=6",
        "group 'database': pool 'news': pinned=8 exceeds workers_max=6",
        "group 'sum': its pools are guaranteed 15 workers together (mail 7, news 8), which exceeds workers_max=14",
        "group 'none': needs workers_max or slots_max",
        "group 'both': workers_max and slots_max are both given",
        "group 'both': pools names pool 'mail' twice",
        "groups: 7 must be a name",
    ):
        assert sentence in said
    assert "'jobs' has no profile" not in said  # its own mistake is named
    assert len(refused.value.breaches) == 9


def test_apply_sends_groups_and_says_what_became_of_each(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["apply", profiles_file(tmp_path, TEXT)]) == 0
    out = capsys.readouterr().out
    assert f"created mail at {served.url}\n" in out
    assert f"created group database at {served.url}\n" in out
    assert main(["diff", profiles_file(tmp_path, TEXT.replace("workers_max: 6", "workers_max: 9"))]) == 1
    out = capsys.readouterr().out
    assert f"would be updated: group database at {served.url}\n  workers_max: 6 → 9\n" in out
    assert "1 of 2 profiles and 1 group would change" in out
    assert main(["apply", profiles_file(tmp_path, TEXT)]) == 0
    assert f"unchanged group database at {served.url}\n" in capsys.readouterr().out
    assert main(["audit", "--subject", "group database", "--json"]) == 0
    assert "group created" in capsys.readouterr().out


def test_pools_and_their_groups_may_be_in_several_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pools = profiles_file(tmp_path, POOLS, "pools.yaml")
    groups = profiles_file(tmp_path, TEXT.removeprefix(POOLS), "groups.yaml")
    assert main(["validate", pools, groups]) == 0
    assert "2 profiles and 1 group, no mistake" in capsys.readouterr().out
    assert main(["validate", groups]) == 2
    assert "pool 'mail' has no profile" in capsys.readouterr().err


def test_a_cap_and_a_floor_may_rise_and_fall_together(served: Served, tmp_path: Path) -> None:
    def applied(floor: int, cap: int) -> list[tuple[str, Any]]:
        mail = Profile(pool="mail", queues=("redis/mail",), template="rq", workers_min=floor)
        group = Group(name="database", workers_max=cap, pools=("mail",))
        return apply_profiles(served.url, TOKEN, [mail], groups=[group])

    assert applied(3, 3) == [("mail", "created"), ("group database", "created")]
    assert applied(8, 8) == [("mail", "updated"), ("group database", "updated")]
    text = (
        "pools:\n  mail: {queues: [redis/mail], template: rq, workers_min: 12}\n"
        "groups:\n  database: {workers_max: 12, pools: [mail]}\n"
    )
    assert main(["apply", "--dry-run", profiles_file(tmp_path, text)]) == 0
    assert applied(2, 2) == [("mail", "updated"), ("group database", "updated")]
    with pytest.raises(Invalid, match="workers_min=5 exceeds workers_max=4"):
        applied(5, 4)


def test_get_and_describe_show_a_group_with_its_use(
    served: Served, seed: Seed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed.host("a")
    assert main(["apply", profiles_file(tmp_path, TEXT)]) == 0
    seed.worker("a", "mail", 1)
    capsys.readouterr()
    for words in (["get", "groups"], ["get", "groups", "--pool", "mail"], ["describe", "group", "database"]):
        assert main(words) == 0
        out = capsys.readouterr().out
        assert "1 of 6 workers" in out
        assert "mail, news" in out
    assert main(["get", "groups", "--pool", "nobody"]) == 2
    assert "no profile 'nobody'" in capsys.readouterr().err
    assert main(["describe", "pool", "mail"]) == 0
    assert "database: 1 of 6 workers" in capsys.readouterr().out
    assert served.url


def test_export_prune_and_delete_know_groups(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["apply", profiles_file(tmp_path, TEXT)]) == 0
    capsys.readouterr()
    assert main(["export"]) == 0
    exported = yaml.safe_load(capsys.readouterr().out)
    assert exported["groups"] == {"database": {"workers_max": 6, "pools": ["mail", "news"]}}
    assert main(["apply", "--prune", "--yes", profiles_file(tmp_path, POOLS)]) == 0
    assert f"deleted group database at {served.url}" in capsys.readouterr().out
    assert main(["apply", profiles_file(tmp_path, TEXT)]) == 0
    assert main(["delete", "--group", "database"]) == 0
    assert f"deleted group database at {served.url}" in capsys.readouterr().out
    assert main(["delete"]) == 2
    assert "no pool is named" in capsys.readouterr().err
