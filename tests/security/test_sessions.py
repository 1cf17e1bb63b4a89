"""Sign-ins of browsers: what another site's page, an old cookie or a planted one cannot do."""

from pathlib import Path

import httpx
import psycopg
import pytest

from headway.control.auth.failed_sign_ins import SIGN_INS_FREE_FAILURES
from headway.store.access.sessions import SESSIONS_MAX, SIGN_INS_PER_MINUTE_MAX
from security.planes import TOKEN, Plane, serving
from support.waiting import eventually

pytestmark = pytest.mark.e2e

COOKIE = "headway_session"
CSRF = "X-Headway-CSRF"
OVERRIDE = "/v1/pools/none/override"
"""Of a pool that does not exist: whoever may set it is answered 404."""


@pytest.fixture
def plane(shared_plane: Plane) -> Plane:
    return shared_plane


def signed_in(client: httpx.Client, token: str = TOKEN) -> str:
    """Sign in. Returns what the page sends with its writes."""
    answer = client.post("/v1/session", json={"token": token})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["csrf"])


def set_override(client: httpx.Client, **headers: str) -> int:
    body = {"workers": 1, "for_s": 60, "reason": "attack"}
    return client.put(OVERRIDE, json=body, headers=headers).status_code


def test_a_session_does_what_its_token_may_and_its_cookie_is_for_the_browser_alone(plane: Plane) -> None:
    viewer, operator = plane.token("viewer", "reads"), plane.token("operator", "acts")
    with plane.client(None) as reader, plane.client(None) as acts:
        answer = reader.post("/v1/session", json={"token": viewer})
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie
        assert "Path=/" in cookie
        assert "Domain" not in cookie
        assert viewer not in cookie
        account = reader.get("/v1/account").json()
        assert (account["name"], account["role"], account["way"]) == ("reads", "viewer", "session")
        assert 0 < account["expires_s"] <= 8 * 3600
        assert set_override(reader, **{CSRF: account["csrf"]}) == 403
        assert reader.get("/v1/tokens").status_code == 403
        assert set_override(acts, **{CSRF: signed_in(acts, operator)}) == 404


@pytest.mark.parametrize("csrf", [None, "", "0" * 64, "of another session", "né"])
def test_a_write_by_cookie_without_the_right_csrf_header_is_refused(plane: Plane, csrf: str | None) -> None:
    with plane.client(None) as page, plane.client(None) as other:
        right, wrong = signed_in(page), signed_in(other)
        shown = wrong if csrf == "of another session" else csrf
        headers = {} if shown is None else {CSRF: shown}
        for method, path in [("PUT", OVERRIDE), ("POST", "/v1/tokens"), ("DELETE", "/v1/session")]:
            encoded = {name: value.encode() for name, value in headers.items()}
            assert page.request(method, path, json={}, headers=encoded).status_code == 403, (method, path)
        assert set_override(page, **{CSRF: right}) == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1"},  # the same machine, another port: the browser sends the cookie there and here
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_page_of_another_origin_uses_no_session_even_with_its_csrf_header(
    plane: Plane, headers: dict[str, str]
) -> None:
    with plane.client(None) as page:
        csrf = signed_in(page)
        assert set_override(page, **{CSRF: csrf, **headers}) == 403
        assert page.get("/v1/profiles", headers=headers).status_code == 403
        assert page.get("/v1/account", headers=headers).status_code == 403


def test_a_form_of_another_site_signs_nobody_in(plane: Plane) -> None:
    """The visitor would act as the attacker, or the attacker's session would be planted."""
    body = f'{{"token": "{TOKEN}"}}'
    with plane.client(None) as browser:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = browser.post("/v1/session", content=body, headers={"Content-Type": kind})
            assert answer.status_code == 422, kind
        foreign = {"Origin": "https://evil.example", "Content-Type": "application/json"}
        assert browser.post("/v1/session", content=body, headers=foreign).status_code == 403
        assert not browser.cookies


def test_a_planted_cookie_is_never_taken_over(plane: Plane) -> None:
    with plane.client(None) as attacker, plane.client(None) as victim:
        signed_in(attacker)
        (cookie,) = attacker.cookies.jar
        victim.cookies.set(cookie.name, str(cookie.value))
        before = str(cookie.value)
        answer = victim.post("/v1/session", json={"token": TOKEN})
        assert before not in answer.headers["Set-Cookie"]  # the session is drawn anew
        drawn = answer.headers["Set-Cookie"].partition("=")[2].partition(";")[0]
        both = {"Cookie": f"{cookie.name}={before}; {cookie.name}={drawn}"}
    with plane.client(None) as browser:
        assert browser.get("/v1/account", headers=both).status_code == 401
        made_up = {"Cookie": f"{cookie.name}=hws_{'a' * 43}"}
        assert browser.get("/v1/account", headers=made_up).status_code == 401


def test_a_cookie_of_another_port_and_a_token_in_a_cookie_are_no_sessions(plane: Plane) -> None:
    with plane.client(None) as page, plane.client(None) as browser:
        signed_in(page)
        (cookie,) = page.cookies.jar
        port = plane.http.rpartition(":")[2]
        assert cookie.name == f"{COOKIE}_{port}"
        for name in (COOKIE, f"{COOKIE}_1"):
            shown = {"Cookie": f"{name}={cookie.value}"}
            assert browser.get("/v1/account", headers=shown).status_code == 401, name
        token = plane.token("viewer", "in-a-cookie")
        for secret in (TOKEN, token):
            shown = {"Cookie": f"{cookie.name}={secret}"}
            assert browser.get("/v1/account", headers=shown).status_code == 401
        shown = {"Authorization": f"Bearer {cookie.value}"}  # and a session is no token
        assert browser.get("/v1/account", headers=shown).status_code == 401


def test_a_session_ends_with_its_token_within_a_second_and_with_its_sign_out_at_once(plane: Plane) -> None:
    with plane.client() as admin, plane.client(None) as page:
        signed_in(page, plane.token("operator", "leaves"))
        (cookie,) = page.cookies.jar
        replayed = {"Cookie": f"{cookie.name}={cookie.value}"}
        assert admin.delete("/v1/tokens/leaves").status_code == 204
        with plane.client(None) as thief:
            eventually(lambda: thief.get("/v1/account", headers=replayed).status_code == 401, within_s=10)
            answer = thief.get("/v1/account", headers=replayed)
            assert "was revoked" in answer.json()["detail"]
            assert "Max-Age=0" in answer.headers["Set-Cookie"]
        with plane.client(None) as page, plane.client(None) as thief:
            csrf = signed_in(page)
            (cookie,) = page.cookies.jar
            replayed = {"Cookie": f"{cookie.name}={cookie.value}"}
            answer = page.delete("/v1/session", headers={CSRF: csrf})
            assert (answer.status_code, page.cookies.jar._cookies.get("127.0.0.1", {}).get("/", {})) == (204, {})
            assert thief.get("/v1/account", headers=replayed).status_code == 401
            assert set_override(thief, **replayed, **{CSRF: csrf}) == 401


def test_a_session_holds_over_a_restart_but_not_over_another_shared_token(migrated_url: str, tmp_path: Path) -> None:
    with serving(migrated_url, tmp_path) as plane, plane.client(None) as page:
        signed_in(page)
        by_shared = page.cookies.jar
        secret = str(next(iter(by_shared)).value)
        with plane.client(None) as other:
            signed_in(other, plane.token("viewer", "stays"))
            by_token = str(next(iter(other.cookies.jar)).value)

    def status(plane: Plane, secret: str) -> int:
        with plane.client(None) as browser:
            shown = {"Cookie": f"{COOKIE}_{plane.http.rpartition(':')[2]}={secret}"}
            return browser.get("/v1/account", headers=shown).status_code

    with serving(migrated_url, tmp_path) as plane:
        assert (status(plane, secret), status(plane, by_token)) == (200, 200)
    with serving(migrated_url, tmp_path, token=TOKEN[::-1]) as plane:
        assert (status(plane, secret), status(plane, by_token)) == (401, 200)


def test_tokens_for_programs_do_not_sign_in(plane: Plane) -> None:
    with plane.client(None) as browser:
        ingest, join = plane.token("ingest", "sends"), plane.token("join", "joins")
        assert browser.post("/v1/session", json={"token": ingest}).status_code == 403
        assert browser.post("/v1/session", json={"token": join}).status_code == 401
        assert not browser.cookies


def test_sign_ins_are_bounded_audited_and_end_the_oldest(migrated_url: str, tmp_path: Path) -> None:
    with serving(migrated_url, tmp_path) as plane, plane.client(None) as browser:
        token = plane.token("viewer", "often")
        statuses = [
            browser.post("/v1/session", json={"token": token}).status_code for _ in range(SIGN_INS_PER_MINUTE_MAX + 5)
        ]
        assert statuses == [201] * SIGN_INS_PER_MINUTE_MAX + [429] * 5
        with psycopg.connect(migrated_url, autocommit=True) as connection:
            connection.execute(
                "update credentials set created_at = created_at - interval '1 hour' where session_of is not null"
            )
            for _ in range(SESSIONS_MAX - SIGN_INS_PER_MINUTE_MAX + 3):
                assert browser.post("/v1/session", json={"token": token}).status_code == 201
            count = "select count(*) from credentials where session_of is not null and revoked_at is null"
            assert connection.execute(count).fetchone() == (SESSIONS_MAX,)
            audited = "select distinct actor, address from audit_log where action = 'signed in'"
            assert connection.execute(audited).fetchall() == [("token often", "127.0.0.1")]
        with plane.client() as admin:
            assert [each["name"] for each in admin.get("/v1/tokens").json()["tokens"]] == ["often"]
            assert admin.delete("/v1/tokens/often").status_code == 204
            assert plane.token("viewer", "often")  # its name is free again


def test_guesses_at_the_sign_in_are_slowed_and_large_ones_refused_unread(plane: Plane) -> None:
    with plane.client(None) as guesser:
        answer = guesser.post("/v1/session", json={"token": "x" * 100_000})
        assert answer.status_code == 413
        statuses = [
            guesser.post("/v1/session", json={"token": f"guess-{n}"}).status_code
            for n in range(SIGN_INS_FREE_FAILURES + 10)
        ]
        assert set(statuses) == {401, 429}
        assert statuses.count(429) >= 9
        assert guesser.post("/v1/session", json={"token": ""}).status_code == 422
