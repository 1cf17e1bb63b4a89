"""``profiles.yaml``: its contents, and how its mistakes are reported."""

from pathlib import Path

import pytest

from headway.cli.profiles_file import ProfilesFile, load_profiles_file
from headway.connections import Connection
from headway.errors import Invalid, Misconfigured
from headway.scaling.model import Objective
from headway.scaling.profile import Profile

WHOLE = """
brokers:            # connection name -> URL
  redis: redis://127.0.0.1:6379/0
pools:
  emails:
    queues: [redis/emails]
    template: emails
    objective: {target_s: 10, percentile: 95}
    workers_min: 0
    workers_max: 20
"""


@pytest.fixture
def loaded(tmp_path: Path):
    def load(text: str) -> ProfilesFile:
        (tmp_path / "profiles.yaml").write_text(text)
        return load_profiles_file(tmp_path / "profiles.yaml")

    return load


def breaches(loaded, text: str) -> list[str]:
    with pytest.raises(Invalid) as raised:
        loaded(text)
    assert all("profiles.yaml" in breach for breach in raised.value.breaches)
    return [breach.partition("profiles.yaml")[2].removeprefix(": ") for breach in raised.value.breaches]


def test_a_file_holds_brokers_and_profiles(loaded) -> None:
    assert loaded(WHOLE) == ProfilesFile(
        brokers=(Connection(name="redis", url="redis://127.0.0.1:6379/0"),),
        profiles=(
            Profile(
                pool="emails",
                queues=("redis/emails",),
                template="emails",
                objective=Objective(target_s=10.0, percentile=95.0),
                workers_max=20,
            ),
        ),
    )


@pytest.mark.parametrize("text", ["", "# nothing yet\n", "brokers:\npools:\n"])
def test_a_file_of_comments_wants_nothing(loaded, text: str) -> None:
    assert loaded(text) == ProfilesFile(brokers=(), profiles=())


def test_all_mistakes_are_reported_together(loaded) -> None:
    text = """
brokers: {redis: nonsense, "a/b": "redis://x", ok: "redis://:a,b@h"}
pool: {}
pools:
  emails: {queues: [redis/emails], workers_max: many}
  7: {}
  news: [redis/news]
"""
    assert breaches(loaded, text) == [
        "unknown key 'pool'; did you mean 'pools'?",
        "brokers: redis: expected a URL, as in redis://127.0.0.1:6379/0",
        "brokers: connection 'a/b' must be a name without '/', '=', ',', '@' and ':'",
        "profile 'emails': workers_max='many': expected a whole number in 0..10000",
        "profile 'emails': template is missing",
        "pools: 7 must be a name; put it in quotes",
        "profile 'news': expected keys and values, got list",
    ]


def test_a_queue_is_in_one_pool_and_its_connection_is_known(loaded) -> None:
    text = """
brokers: {redis: "redis://127.0.0.1/0"}
pools:
  one: {queues: [redis/mail, other/mail], template: rq}
  two: {queues: [redis/mail, mail], template: rq}
"""
    assert breaches(loaded, text) == [
        "queue 'redis/mail' is in 2 pools; it belongs to exactly one: name it under helps of the others",
        "queue 'other/mail': no connection 'other' under brokers; there: redis",
        "queue 'mail' must be written as connection/queue",
    ]


def test_a_queue_that_a_pool_helps_with_is_read_and_not_excluded(loaded) -> None:
    text = """
brokers: {redis: "redis://127.0.0.1/0"}
exclude: ["redis/rq-test-*"]
pools:
  one: {queues: [redis/mail], template: rq}
  two: {queues: [redis/news], template: rq, helps: [redis/mail, other/bulk, redis/rq-test-1]}
"""
    assert breaches(loaded, text) == [
        "queue 'other/bulk': no connection 'other' under brokers; there: redis",
        "profile 'two': queue 'redis/rq-test-1' is excluded by 'redis/rq-test-*'",
    ]


def test_an_excluded_queue_is_served_by_no_pool(loaded) -> None:
    text = """
exclude: ["redis/rq-test-*", "*/scratch"]
pools:
  tests: {queues: [redis/mail, redis/rq-test-1], template: rq}
"""
    assert breaches(loaded, text) == ["profile 'tests': queue 'redis/rq-test-1' is excluded by 'redis/rq-test-*'"]
    assert loaded(text.replace(", redis/rq-test-1", "")).exclude == ("redis/rq-test-*", "*/scratch")
    assert breaches(loaded, "exclude: redis/*\n") == ['exclude: expected a list of patterns, as ["redis/test-*"]']


def test_patterns_are_taken_and_what_crosses_or_means_nothing_is_reported(loaded) -> None:
    sound = """
exclude: ["redis/test-*"]
brokers: {redis: {url: "redis://127.0.0.1/0", queues: ["tenant-*"], exclude: [tenant-test-*]}}
pools:
  tenants: {queues: [redis/tenant-vip, redis/tenant-*], template: rq}
  big: {queues: [redis/tenant-big-*], template: rq}
"""
    assert [each.queues for each in loaded(sound).profiles] == [
        ("redis/tenant-vip", "redis/tenant-*"),
        ("redis/tenant-big-*",),
    ]
    wrong = """
exclude: ["redis/tenant-test-?", "redis/old-*"]
pools:
  tenants: {queues: ["redis/tenant-*", "redis/old-1*"], template: rq}
  mail: {queues: ["redis/*-mail", "*/mail"], template: "rq*"}
"""
    assert breaches(loaded, wrong) == [
        "profile 'mail': queues: '*/mail' must name its connection, as in 'redis/tenant-*'",
        "profile 'mail': template: 'rq*' is a pattern, which only queues may hold: name one",
        (
            "profile 'tenants': 'redis/tenant-*' may match what is excluded by 'redis/tenant-test-?': write that under "
            "`exclude` of the connection, whose collector then reads no such queue, or narrow one of them"
        ),
        "profile 'tenants': queue 'redis/old-1*' is excluded by 'redis/old-*'",
    ]
    crossing = """
pools:
  tenants: {queues: ["redis/tenant-*", "redis/all-*"], template: rq}
  mail: {queues: ["redis/*-mail", "redis/all-*"], template: rq}
"""
    assert breaches(loaded, crossing) == [
        "queue 'redis/all-*' is in 2 pools; it belongs to exactly one",
        (
            "queues 'redis/*-mail' of pool 'mail' and 'redis/tenant-*' of pool 'tenants' stand for the same queues, "
            "and neither lies within the other: a queue belongs to exactly one pool, so narrow one of them"
        ),
        (
            "queues 'redis/*-mail' of pool 'mail' and 'redis/all-*' of pool 'tenants' stand for the same queues, and "
            "neither lies within the other: a queue belongs to exactly one pool, so narrow one of them"
        ),
    ]


def test_sla_defaults_are_the_profile_of_each_queue_that_no_pool_names(loaded) -> None:
    text = """
brokers: {redis: "redis://127.0.0.1/0", shop: "redis://127.0.0.1/1"}
sla_defaults: {template: rq, workers_max: 3}
pools:
  mail: {queues: [redis/mail], template: rq}
"""
    mail, defaults = loaded(text).profiles
    assert mail.pool == "mail"
    assert (defaults.pool, defaults.queues, defaults.workers_max, defaults.pools_max) == (
        "sla_defaults",
        ("redis/*", "shop/*"),
        3,
        50,
    )
    narrowed = text.replace("workers_max: 3", "queues: [shop/tenant-*], pools_max: 7")
    (defaults,) = (each for each in loaded(narrowed).profiles if each.pool == "sla_defaults")
    assert (defaults.queues, defaults.pools_max) == (("shop/tenant-*",), 7)
    assert breaches(loaded, "sla_defaults: {template: rq}\n") == ["profile 'sla_defaults': queues is missing"]
    assert breaches(loaded, "sla_defaults: {template: rq, queues: [redis/mail]}\n") == [
        (
            "profile 'sla_defaults': pools_max makes a pool of each queue that a pattern matches: queues may hold "
            "patterns only"
        )
    ]
    assert breaches(loaded, "sla_defaults: [rq]\n")[0] == "sla_defaults: expected keys and values, got list"


def test_words_and_times_need_no_quotes(loaded) -> None:
    """YAML 1.1 would make false of `off`, 1080 of 18:00 and a date without its zone of the last."""
    text = """
pools:
  mail:
    queues: [redis/mail]
    template: rq
    forecast: off
    schedules:
      - {starts: 09:00, ends: 18:00, workers_min: 2}
      - {starts: 2026-11-27 08:00+01:00, ends: 2026-11-28T08:00:00Z, workers_min: 0x10}
"""
    (profile,) = loaded(text).profiles
    assert profile.forecast == "off"
    assert [(each.starts, each.ends, each.workers_min) for each in profile.schedules] == [
        ("09:00", "18:00", 2),
        ("2026-11-27 08:00+01:00", "2026-11-28T08:00:00Z", 16),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("pools:\n  emails: [redis/mail\n", " line 3: expected ',' or ']', but got '<stream end>'"),
        ("pools:\n  emails: {}\n  emails: {}\n", " line 3: 'emails' stands there twice, first in line 2"),
        ("\tpools: 1", " line 1: found character '\\t' that cannot start any token"),
        ("- a\n", "the file: expected keys and values, got list"),
        ("pools:\n  ? [a, b]\n  : 1\n", " line 2: a key must be a word, not a list or a mapping"),
    ],
)
def test_what_is_no_yaml_is_one_sentence_with_the_line(loaded, text: str, message: str) -> None:
    assert breaches(loaded, text) == [message]


def test_a_merged_mapping_is_no_repetition(loaded) -> None:
    text = "pools:\n  a: &a {queues: [r/a], template: t}\n  b: {<<: *a, queues: [r/b]}\n"
    assert [profile.queues for profile in loaded(text).profiles] == [("r/a",), ("r/b",)]


def nested(depth: int, mapping: str) -> str:
    """A file of ``depth`` lines, each of which holds the one before nine times."""
    lines = [f"  l{n}: &l{n} {mapping.format(', '.join([f'*l{n - 1}'] * 9))}" for n in range(1, depth + 1)]
    return "\n".join(["lines:", "  l0: &l0 {a: 1}", *lines])


def test_a_few_lines_of_aliases_make_no_endless_sentence(loaded) -> None:
    """Nine to the sixth values were printed: with three lines more, as many as there is memory for."""
    text = nested(6, "[{}]") + "\npools:\n  mail: {queues: *l6, template: rq}\n"
    assert sum(map(len, breaches(loaded, text))) < 10_000


def test_lists_in_lists_without_end_are_one_sentence(loaded) -> None:
    (breach,) = breaches(loaded, "pools: " + "[" * 20_000)
    assert breach.endswith("nested too deeply")


def test_a_few_lines_of_merges_make_no_endless_mapping(loaded) -> None:
    (breach,) = breaches(loaded, nested(6, "{{<<: [{}]}}") + "\n")
    assert breach.endswith("more than 10000 keys come together here")


def test_a_file_that_is_not_there_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured, match=r"none\.yaml cannot be read: No such file.*`headway init`"):
        load_profiles_file(tmp_path / "none.yaml")
