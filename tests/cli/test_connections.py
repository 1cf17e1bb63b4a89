"""Connections as they are written in profiles.yaml and in settings: URLs, tables, and every mistake in them at once."""

import sys
import tomllib
from pathlib import Path

import pytest

from headway.__main__ import main
from headway.cli.profiles_file import load_profiles_file
from headway.connection_tables import as_toml, connections_from
from headway.connections import ESCAPED, EVERY_S, Connection, is_url, shown
from headway.errors import Invalid
from headway.settings import CollectSettings

URL = "redis://127.0.0.1:6379/0"
SECRET = "s3cret-7"


def read(values: dict) -> tuple[Connection, ...]:
    breaches: list[str] = []
    connections = connections_from(values, breaches, where="brokers")
    assert breaches == []
    return connections


def refused(values: dict) -> list[str]:
    breaches: list[str] = []
    connections_from(values, breaches, where="brokers")
    return breaches


@pytest.fixture
def whole(tmp_path: Path) -> Connection:
    """One with every key."""
    (tmp_path / "password").write_text(f"{SECRET}\n")
    (tmp_path / "sentinel").write_text(SECRET)
    (tmp_path / "ca.pem").write_text("a certificate")
    return Connection(
        name='odd "name"',
        url='rediss://app@h:1/2?a="b"',
        library="rq",
        password_file=tmp_path / "password",
        sentinel_password_file=tmp_path / "sentinel",
        ca_file=tmp_path / "ca.pem",
        queues=("mail", 'test-"*"'),
        exclude=("test-\\x",),
        every_s=1.0,
        processor_share=0.4,
        prefix="acme:ümlaut",
    )


def test_a_url_alone_is_the_short_form_of_a_table() -> None:
    short, long = read({"a": "redis://h/0", "b": {"url": "redis://h/1"}})
    assert short == Connection(name="a", url="redis://h/0")
    assert long == Connection(name="b", url="redis://h/1")
    assert (short.library, short.every_s, short.queues) == ("auto", EVERY_S, ())


def test_what_is_handed_to_the_collectors_is_read_as_it_was_written(whole: Connection) -> None:
    connections = (whole, Connection(name="b", url="redis://:a,b=\x7f@h/1"))
    settings = CollectSettings.from_env({"HEADWAY_BROKERS": as_toml(connections)})
    assert settings.connections == connections
    assert read(tomllib.loads(as_toml(connections))) == connections


@pytest.mark.parametrize(
    ("url", "is_one", "seen"),
    [
        ("redis://h:1/0", True, "redis://h:1/0"),
        ("unix:///run/a@b.sock?db=1", True, "unix:///run/a@b.sock?db=1"),
        ("redis+sentinel://a:1,b:2/main/0", True, "redis+sentinel://a:1,b:2/main/0"),
        ("redis://h/0?username=a@b", True, "redis://h/0?username=a@b"),
        ("amqp://guest@h//", True, "amqp://guest@h//"),
        (f"redis://u:{SECRET}@h:1/0", True, "redis://u:***@h:1/0"),
        (f"redis://h/0?username=u&PASSWORD={SECRET}", True, "redis://h/0?username=u&PASSWORD=***"),
        (f"unix:///run/s?password={SECRET}&db=1", True, "unix:///run/s?password=***&db=1"),
        (f"redis://:{SECRET}#x@h:1/0", False, "redis://***@h:1/0"),
        (f"redis://:{SECRET}/x@h:1/0", False, "redis://***@h:1/0"),
        (f"redis://:{SECRET}?x@h:1/0", False, "redis://***@h:1/0"),
        (f"redis://:{SECRET}[x@h:1/0", False, "redis://***@h:1/0"),
        (f"redis://:12#{SECRET}@h:1/0", False, "redis://***@h:1/0"),
        (f"redis://:12/{SECRET}@h:1/0", False, "redis://***@h:1/0"),
        (f"redis://:12?{SECRET}@h:1/0", False, "redis://***@h:1/0"),
        (f"redis://u:{SECRET}", False, "redis://***"),
        (f"redis://[{SECRET}", False, "redis://***"),
    ],
)
def test_no_password_is_shown_however_it_is_written(url: str, is_one: bool, seen: str) -> None:
    """A # or / in a drawn password ended the host's part: the rest was repeated as a port that is no number."""
    assert (is_url(url), shown(url)) == (is_one, seen)
    found: list[str] = []
    connections_from({"a": url}, found, where="brokers")
    assert bool(found) != is_one
    assert SECRET not in "".join(found)


def test_settings_take_tables_as_toml_and_the_short_form_as_before(tmp_path: Path) -> None:
    file = tmp_path / "brokers"
    file.write_text(f'shop = "{URL}"\n\n[mail]\nurl = "redis://h/1"\nqueues = ["mail"]\nevery_s = 2\n')
    shop, mail = CollectSettings.from_env({"HEADWAY_BROKERS_FILE": str(file)}).connections
    assert (shop, mail.queues, mail.every_s) == (Connection(name="shop", url=URL), ("mail",), 2.0)
    short = CollectSettings.from_env({"HEADWAY_BROKERS": f"a={URL},b=redis://:p@h/1"}).connections
    assert [(each.name, each.url) for each in short] == [("a", URL), ("b", "redis://:p@h/1")]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"a": "nonsense"}, "a: expected a URL, as in redis://127.0.0.1:6379/0"),
        ({"a": f"redis://:{SECRET}@h:port/0"}, f"a: expected a URL, as in redis://127.0.0.1:6379/0; {ESCAPED}"),
        ({"a": f"redis://[{SECRET}/0"}, f"a: expected a URL, as in redis://127.0.0.1:6379/0; {ESCAPED}"),
        ({"a": 7}, "a: expected a URL, as in redis://127.0.0.1:6379/0, or a table with one"),
        ({"a": {}}, "a: url is missing"),
        ({"a/b": URL}, "connection 'a/b' must be a name without '/', '=', ',', '@' and ':'"),
        ({"a": {"url": URL, "librari": "rq"}}, "a: unknown key 'librari'; did you mean 'library'?"),
        ({"a": {"url": URL, "library": ""}}, "a: library='': expected a text that is not empty"),
        ({"a": {"url": URL, "every_s": 0.01}}, "a: every_s=0.01 must lie in 0.1..5 seconds"),
        (
            {"a": {"url": URL, "processor_share": 2}},
            "a: processor_share=2 must lie in 0.01..1: the part of one core",
        ),
        ({"a": {"url": URL, "every_s": True}}, "a: every_s=True: expected a number in 0.1..5 seconds"),
        (
            {"a": {"url": URL, "queues": "mail"}},
            'a: queues=\'mail\': expected a list of patterns, as ["mail", "test-*"], without the connection',
        ),
        (
            {"a": {"url": f"redis://:{SECRET}@h/0", "password_file": "/f"}},
            "a: a password in url and a password_file exclude each other: keep the file",
        ),
    ],
)
def test_a_mistake_is_named_and_no_password_with_it(values: dict, says: str) -> None:
    assert refused(values) == [f"brokers: {says}"]
    assert SECRET not in says


@pytest.mark.parametrize(
    ("one", "other", "what"),
    [
        ({}, {}, "the same queues"),
        ({"queues": ["mail"]}, {}, "queue 'mail'"),
        ({"queues": ["mail"]}, {"queues": ["m*"]}, "queue 'mail'"),
        ({"queues": ["m*"]}, {"queues": ["m*"]}, "the same queues"),
        ({"exclude": ["mail"]}, {}, "the same queues"),
        ({"url": "redis://u:p@h"}, {"url": "redis://h:/0"}, "the same queues"),
        ({"url": "unix:///s?db=0"}, {"url": "unix:///s"}, "the same queues"),
        ({"url": "redis+sentinel://a:1,b/m"}, {"url": "redis+sentinel://u@b,a:1/m/0"}, "the same queues"),
        ({"url": "redis+sentinel://a/m"}, {"url": "redis+sentinel://a/n"}, None),
        ({"library": "rq"}, {}, "the same queues"),
        ({"queues": ["mail"]}, {"queues": ["news"]}, None),
        ({"queues": ["mail"]}, {"exclude": ["mail"]}, None),
        ({"url": "redis://h/1"}, {}, None),
        ({"url": "redis://h:1"}, {}, None),
        ({"prefix": "acme"}, {}, None),
        ({"library": "rq"}, {"library": "other"}, None),
    ],
)
def test_a_queue_that_two_connections_claim_is_a_mistake(one: dict, other: dict, what: str | None) -> None:
    found = refused({"a": {"url": "redis://h/0", **one}, "b": {"url": "redis://h/0", **other}})
    assert len(found) == (what is not None)
    if what:
        assert found[0].startswith(f"brokers: 'a' and 'b' both read {what} of ")
        assert found[0].endswith("would count twice: leave each queue to one of them, with queues or exclude")


MISTAKES = f"""
one = "redis://:{SECRET}@h/0"
two = {{url = "redis://h/0", queues = ["mail"]}}
lib = {{url = "{URL}", library = "rqq"}}
scheme = {{url = "amqp://u:{SECRET}@h", library = "rq"}}
none = "sqs://u:{SECRET}@h"
secret = {{url = "redis://h/3", password_file = "/none/password"}}
ca = {{url = "redis://h/4", ca_file = "/none/ca.pem"}}
prefix = {{url = "redis://h/5", prefix = "a b"}}
cluster = "redis+cluster://h:1,i:2"
key = {{url = "redis://h/6", quues = []}}
"""


def test_every_mistake_in_connections_is_reported_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "brokers.toml").write_text(MISTAKES)
    monkeypatch.delenv("HEADWAY_BROKERS", raising=False)
    monkeypatch.setenv("HEADWAY_BROKERS_FILE", str(tmp_path / "brokers.toml"))
    monkeypatch.setenv("HEADWAY_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HEADWAY_CONTROL", "nowhere")
    assert main(["collect"]) == 2
    output = capsys.readouterr().err
    for mistake in (
        "'one' and 'two' both read queue 'mail' of redis://h/0",
        "HEADWAY_BROKERS: key: unknown key 'quues'; did you mean 'queues'?",
        "connection 'lib': library 'rqq' is not known; did you mean 'rq'?",
        "connection 'scheme': broker URL 'amqp://u:***@h': expected redis+cluster:// or redis+sentinel:// or ",
        "connection 'none': broker URL 'sqs://u:***@h': expected ",
        "connection 'secret': password_file /none/password cannot be read: No such file or directory",
        "connection 'ca': ca_file /none/ca.pem is not there",
        "connection 'ca': ca_file needs a URL that begins with rediss",
        "connection 'cluster': redis+cluster:// needs a prefix with a hash tag, as {jobs}: a queue library runs on a ",
        "connection 'prefix': prefix 'a b': RQ_KEY_PREFIX has letters, digits and _ . : - { } only",
        "HEADWAY_CONTROL='nowhere': expected HOST:PORT",
    ):
        assert mistake in output
    assert SECRET not in output
    assert not (tmp_path / "state").exists()


def test_a_client_that_is_not_installed_is_a_mistake_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.startswith("headway.collect.rabbitmq")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "amqp", None)
    monkeypatch.setenv("HEADWAY_BROKERS", f'a = {{url = "amqp://u:{SECRET}@h", library = "rabbitmq"}}\nb = "nonsense"')
    assert main(["collect"]) == 2
    output = capsys.readouterr().err
    assert "HEADWAY_BROKERS: b: expected a URL" in output
    assert "connection 'a': library 'rabbitmq' needs the package 'amqp': pip install 'headway-" in output
    assert "[rabbitmq]'" in output
    assert SECRET not in output


def test_text_that_is_no_toml_is_refused_without_a_word_of_it() -> None:
    with pytest.raises(Invalid, match=r"^HEADWAY_BROKERS is no TOML: Unterminated string") as caught:
        CollectSettings.from_env({"HEADWAY_BROKERS": f'a = "redis://h/0"\nb = "redis://:{SECRET}@h'})
    assert SECRET not in str(caught.value)


def profiles(tmp_path: Path, text: str) -> Path:
    (tmp_path / "profiles.yaml").write_text(text)
    return tmp_path / "profiles.yaml"


def test_a_connection_of_a_profiles_file_may_be_a_table_and_its_exclude_adds_to_the_files(tmp_path: Path) -> None:
    file = load_profiles_file(
        profiles(
            tmp_path,
            "brokers:\n  shop: {url: redis://h/0, library: rq, exclude: [test-*]}\n  b: redis://h/1\n"
            "exclude: [b/tmp-*]\npools:\n  mail: {queues: [shop/mail], template: mail}\n",
        )
    )
    assert file.brokers == (
        Connection(name="shop", url="redis://h/0", library="rq", exclude=("test-*",)),
        Connection(name="b", url="redis://h/1"),
    )
    assert file.exclude == ("b/tmp-*", "shop/test-*")


def test_a_pool_may_serve_only_what_its_connection_reads(tmp_path: Path) -> None:
    path = profiles(
        tmp_path,
        "brokers:\n  shop: {url: redis://h/0, queues: [mail, m-*], exclude: [m-9]}\npools:\n"
        "  a: {queues: [shop/mail, shop/m-1], template: t}\n  b: {queues: [shop/news], template: t}\n"
        "  c: {queues: [shop/m-9], template: t}\n",
    )
    with pytest.raises(Invalid) as caught:
        load_profiles_file(path)
    assert [breach.partition("profiles.yaml: ")[2] for breach in caught.value.breaches] == [
        "queue 'shop/news': connection 'shop' reads mail, m-* only",
        "profile 'c': queue 'shop/m-9' is excluded by 'shop/m-9'",
    ]


def test_files_that_only_the_collectors_need_may_be_missing_where_profiles_are_applied(tmp_path: Path) -> None:
    path = profiles(
        tmp_path, "brokers: {a: {url: rediss://h/0, password_file: /none/p, ca_file: /none/c}}\npools: {}\n"
    )
    (connection,) = load_profiles_file(path).brokers
    assert connection.file_breaches() == [
        "password_file /none/p cannot be read: No such file or directory",
        "ca_file /none/c is not there",
    ]


def test_a_connection_shows_no_password() -> None:
    connection = Connection(name="a", url=f"redis://u:{SECRET}@h/0")
    assert SECRET not in f"{connection} {connection!r} {connection.shown_url}"
