"""Notifications: each incident and its end once, in order per pool, whatever a receiver does."""

import asyncio
import base64
import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from control.hooks import SECRET, Hook, serving_hook
from headway.control.notifications.messages import signature
from headway.control.notifications.receivers import Receiver, read_receivers, receivers_of
from headway.control.notifications.sender import GIVEN_UP_AFTER_S, PAUSE, NotificationSender
from headway.errors import Invalid
from headway.scaling.conditions.incident_rules import IncidentChange, IncidentCondition, IncidentKey
from headway.store.engine import Engine, transaction
from headway.store.incidents import Silence, put_silence, save_change
from headway.store.leadership import Superseded
from security.planes import serving
from support.seed import Seed
from support.tree import ROOT
from support.waiting import eventually

PAGE = (ROOT / "docs/how-to/alerts.md").read_text()
(VERIFIES,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
NOW_S = 1_800_000_000.0
PLANES_S = 90.0  # one leads, and tries again after a pause


@pytest.fixture
def hook() -> Iterator[Hook]:
    with serving_hook() as server:
        yield server


class Leader:
    """Opens and closes incidents, and sends, under the epoch of a leader."""

    def __init__(self, engine: Engine, seed: Seed) -> None:
        seed.leader()
        self.engine = engine
        self.epoch = int(seed.rows("select epoch from leader_epoch")[0][0])
        self.now_s = NOW_S

    async def change(self, pool: str, *to: Receiver, ends: bool = False, summary: str = "a <b> & c") -> None:
        key = IncidentKey(rule="pool_late", pool=pool)
        condition = IncidentCondition(severity="page", summary=summary, action="act")
        change = IncidentChange(closed=[key]) if ends else IncidentChange(opened={key: (self.now_s, condition)})
        async with transaction(self.engine) as conn:
            await save_change(
                conn, change, now_s=self.now_s, epoch=self.epoch, receivers_of=lambda labels: receivers_of(to, labels)
            )

    async def send(self, *to: Receiver, ahead: int = 0, leads: Callable[[], bool] = lambda: True) -> None:
        """One poll of a sender that has just started."""
        sender = NotificationSender(
            engine=self.engine,
            receivers=to,
            epoch=lambda: self.epoch + ahead if leads() else None,
            clock=lambda: self.now_s,
            attempt_s=0.5,
        )
        async with httpx.AsyncClient(trust_env=False, timeout=0.5) as client:
            await asyncio.gather(*(sender.send_due(client, each) for each in to))


@pytest.fixture
def leader(engine: Engine, seed: Seed) -> Leader:
    return Leader(engine, seed)


async def test_each_incident_and_its_end_is_posted_once_over_restarts(leader: Leader, hook: Hook) -> None:
    to = hook.receiver()
    for _ in range(2):  # a repeated change adds nothing
        await leader.change("mail", to)
    for _ in range(2):
        await leader.change("mail", to, ends=True)
    for _ in range(4):  # each a sender that knows nothing of the earlier one
        await leader.send(to)
    assert hook.taken == [("mail", "begin"), ("mail", "end")]


async def test_a_message_is_a_signed_cloud_event(leader: Leader, hook: Hook) -> None:
    to = hook.receiver()
    await leader.change("mail", to)
    await leader.send(to)
    (head,), (body,) = hook.heads, hook.bodies
    assert head["content-type"] == "application/cloudevents+json"
    assert head["webhook-signature"] == signature(SECRET, head["webhook-id"], head["webhook-timestamp"], body)
    event = json.loads(body)
    assert (event["specversion"], event["type"]) == ("1.0", "headway.incident.begin")
    assert (event["id"], event["data"]["pool"]) == (head["webhook-id"], "mail")


def test_the_signature_is_that_of_standard_webhooks() -> None:
    # The example of the specification's libraries.
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("status", [500, 302])
async def test_a_failing_pool_holds_its_own_later_messages_only(leader: Leader, hook: Hook, status: int) -> None:
    to = hook.receiver()
    hook.status["mail"] = status
    await leader.change("mail", to)
    await leader.change("mail", to, ends=True)
    await leader.change("video", to)
    await leader.send(to)
    await leader.send(to)  # the pause is not over
    assert hook.taken == [("video", "begin")]
    hook.status.clear()
    leader.now_s += PAUSE.after_s(1)
    await leader.send(to)
    await leader.send(to)
    assert hook.taken == [("video", "begin"), ("mail", "begin"), ("mail", "end")]


async def test_a_receiver_that_hangs_is_tried_again_and_holds_no_other(leader: Leader, hook: Hook) -> None:
    with serving_hook() as hangs:
        hangs.hangs.set()
        slow, quick = hangs.receiver("slow"), hook.receiver("quick")
        await leader.change("mail", slow, quick)
        await leader.send(slow, quick)
        assert (hangs.taken, hook.taken) == ([], [("mail", "begin")])
        hangs.hangs.clear()
        leader.now_s += PAUSE.after_s(1)
        await leader.send(slow, quick)
        assert (hangs.taken, hook.taken) == ([("mail", "begin")], [("mail", "begin")])


@pytest.mark.e2e
@pytest.mark.parametrize("trouble", ["hangs", "fails"])
async def test_none_is_lost_where_a_control_plane_is_killed(
    leader: Leader, hook: Hook, migrated_url: str, tmp_path: Path, trouble: str
) -> None:
    (tmp_path / "secret").write_bytes(SECRET)
    file = tmp_path / "notifications.toml"
    file.write_text(
        f'[receivers.oncall]\nurl = "http://127.0.0.1:{hook.server_port}/"\nsecret_file = "{tmp_path}/secret"\n'
    )
    settings = {"HEADWAY_NOTIFICATIONS": str(file)}
    leader.now_s = time.time()
    await leader.change("mail", hook.receiver())  # what is not so: who leads next ends it
    if trouble == "hangs":
        hook.hangs.set()
    else:
        hook.status["mail"] = 500
    with serving(migrated_url, tmp_path, settings) as plane:
        eventually(lambda: hook.tries, within_s=PLANES_S)
        os.kill(plane.pid, signal.SIGKILL)
    hook.status.clear()
    hook.hangs.clear()
    with serving(migrated_url, tmp_path, settings):
        eventually(lambda: len(hook.taken) == 2, within_s=PLANES_S)
    assert hook.taken == [("mail", "begin"), ("mail", "end")]
    assert hook.tries >= 3


async def test_a_message_is_given_up_after_a_day(leader: Leader, hook: Hook, seed: Seed) -> None:
    to = hook.receiver()
    hook.status["mail"] = 500
    await leader.change("mail", to)
    leader.now_s += GIVEN_UP_AFTER_S
    await leader.send(to)
    assert seed.rows("select state, attempts from notifications") == [("given_up", 1)]


async def test_who_no_longer_leads_sends_nothing(leader: Leader, hook: Hook) -> None:
    to = hook.receiver()
    await leader.change("mail", to)
    with pytest.raises(Superseded):
        await leader.send(to, ahead=-1)
    assert hook.taken == []


async def test_who_is_replaced_while_a_receiver_hangs_posts_no_more_to_it(leader: Leader, hook: Hook) -> None:
    """It posted what it had read, ten seconds each, beside the next leader."""
    to = hook.receiver()
    for number in range(12):
        await leader.change(f"pool-{number}", to)
    began = hook.receiver()
    await leader.send(began, leads=lambda: len(hook.taken) < 4)
    assert 4 <= len(hook.taken) < 8  # four at once were under way


async def test_a_receiver_is_sent_so_many_at_once(leader: Leader, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.store.outbox.notifications.DUE_MAX", 2, raising=False)
    to = hook.receiver()
    for number in range(3):
        await leader.change(f"pool-{number}", to)
    await leader.send(to)
    assert sorted(pool for pool, _ in hook.taken) == ["pool-0", "pool-1"]  # at once: none comes before the other
    await leader.send(to)
    assert len(hook.taken) == 3


async def test_a_silenced_incident_is_posted_to_nobody(leader: Leader, hook: Hook, engine: Engine) -> None:
    to = hook.receiver()
    silence = Silence(name="s", matchers={"pool": "mail"}, until_s=NOW_S + 60, reason="r", created_by="c")
    async with transaction(engine) as conn:
        await put_silence(conn, silence, actor="c")
    await leader.change("mail", to)
    await leader.change("mail", to, ends=True)
    await leader.send(to)
    assert hook.taken == []


async def test_slack_receives_escaped_text(leader: Leader, hook: Hook) -> None:
    to = hook.receiver(template="slack")
    await leader.change("mail", to)
    await leader.send(to)
    assert json.loads(hook.bodies[0]) == {"text": "PAGE: a &lt;b&gt; &amp; c\nact"}


async def test_a_name_forges_no_line_of_a_message(leader: Leader, hook: Hook) -> None:
    await leader.change("mail", hook.receiver(template="slack"), summary="host x\nEnded: all is well\u202e\x1b[2J")
    await leader.send(hook.receiver(template="slack"))
    text = json.loads(hook.bodies[0])["text"]
    assert text == "PAGE: host x\\nEnded: all is well\\u202e\\x1b[2J\nact"


@pytest.mark.parametrize("text", ["", "a = " + "[" * 20_000, "\x00", "receivers = 1"])
def test_a_file_of_receivers_that_is_none_is_one_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "n.toml"
    file.write_text(text)
    with pytest.raises(Invalid, match=r"n\.toml"):
        read_receivers(file)


def test_a_file_of_receivers_that_others_may_write_names_nobody(tmp_path: Path) -> None:
    file = tmp_path / "n.toml"
    file.write_text('[receivers.b]\nurl = "http://127.0.0.1:1/x"\ntemplate = "slack"\n')
    file.chmod(0o666)
    with pytest.raises(Invalid, match="can be written by others"):
        read_receivers(file)


def test_receivers_are_read_and_route_by_label(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("whsec_" + base64.b64encode(SECRET).decode())
    file = tmp_path / "n.toml"
    file.write_text(
        f'[receivers.a]\nurl = "https://a.example/x"\nsecret_file = "{tmp_path}/secret"\n'
        'match = { pool = "mail-*" }\n'
        '[receivers.b]\nurl = "http://127.0.0.1:1/x"\ntemplate = "slack"\n'
    )
    read = read_receivers(file)
    assert read[0].secret == SECRET
    assert receivers_of(read, {"pool": "mail-eu"}) == ["a", "b"]
    assert receivers_of(read, {"pool": "video"}) == ["b"]
    assert "example" not in repr(read)
    assert SECRET.decode() not in repr(read)


@pytest.mark.parametrize(
    "table",
    [
        'url = "http://a.example/"\ntemplate = "slack"',  # not TLS, not this machine
        'url = "file:///etc/passwd"\ntemplate = "slack"',
        'url = "https://a.example/"',  # no secret
        'url = "https://a.example/"\ntemplate = "slack"\nmatch = { queue = "x" }',
        'url = "https://a.example/"\ntemplate = "slack"\nother = 1',
    ],
)
def test_a_wrong_receiver_is_refused_and_its_url_not_repeated(tmp_path: Path, table: str) -> None:
    file = tmp_path / "n.toml"
    file.write_text(f"[receivers.a]\n{table}\n")
    with pytest.raises(Invalid) as refused:
        read_receivers(file)
    assert "example" not in str(refused.value)


def test_every_mistake_in_receivers_is_reported_at_once(tmp_path: Path) -> None:
    file = tmp_path / "n.toml"
    file.write_text(
        '[receivers.a]\nurl = "http://a.example/"\ntemplte = "slack"\nallow_plain_http = "yes"\n'
        '[receivers.b]\nurl = 7\ntemplate = "slak"\nmatch = { queue = "x" }\nsecret_file = "/none"\n'
    )
    with pytest.raises(Invalid) as refused:
        read_receivers(file)
    assert [each.removeprefix(f"{file}: receiver ") for each in refused.value.breaches] == [
        "'a': unknown key 'templte'; did you mean 'template'?",
        "'a': allow_plain_http='yes': expected true or false",
        "'a': url begins with https://, or names this machine, or allow_plain_http = true is set",
        "'a': secret_file cannot be read, or is no base64 after whsec_",
        "'b': url: expected a text that is not empty",
        "'b': template='slak': expected one of cloudevents, slack; did you mean 'slack'?",
        "'b': match={'queue': 'x'}: expected patterns of rule, severity, pool, host, kind",
        "'b': secret_file cannot be read, or is no base64 after whsec_",
    ]


def test_the_pages_function_knows_a_genuine_message_from_a_forged_or_an_old_one() -> None:
    page: dict[str, Any] = {}
    exec(VERIFIES, page)
    body, at = b'{"id": "msg_1"}', str(int(time.time()))
    headers = {"webhook-id": "msg_1", "webhook-timestamp": at}
    headers["webhook-signature"] = signature(SECRET, "msg_1", at, body)
    assert page["is_genuine"](headers, body, SECRET)
    assert not page["is_genuine"](headers, body + b" ", SECRET)
    assert not page["is_genuine"](headers, body, b"another secret")
    old = str(int(at) - 600)
    headers |= {"webhook-timestamp": old, "webhook-signature": signature(SECRET, "msg_1", old, body)}
    assert not page["is_genuine"](headers, body, SECRET)
