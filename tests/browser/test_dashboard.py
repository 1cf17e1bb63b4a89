"""The dashboard in a real browser: it shows what is so, says when it does not know, and works by keys alone."""

import json
import re
import time
from typing import Any

from playwright.async_api import Browser, Page, expect

from browser.pages import CONTRAST, IN_A_BROWSER, opened
from browser.scene import SOON, one_pool, play
from headway.scaling.allocation.host_demand import HostsWanted
from headway.scaling.model import Decision, Demand, Mode, Objective, QueueMetrics
from headway.scaling.profile import Profile
from headway.store.engine import Engine, transaction
from headway.store.pools.host_demand import save_hosts_wanted
from support.seed import Seed

CONTROLS = """[...document.querySelectorAll('a, button, input, summary, [tabindex="0"]')].filter(
    (each) => each.checkVisibility() && each.tabIndex >= 0)"""
EVERY_BADGE = f"""() => {{
    const badge = document.querySelector(".badge:not([hidden])");
    const states = ["on_time", "idle", "scaling", "at_risk", "recovering", "unmeasured", "breaching", "crash_loop",
        "failing", "no_host", "stale", "unseen", "unlisted", "unmanaged"];
    return states.flatMap((state) => {{ badge.dataset.state = state; return ({CONTRAST})(); }});
}}"""

WRITTEN = """(() => {
    const fillText = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...place) {
        (this.canvas.written ??= new Set()).add(text);
        return fillText.call(this, text, ...place);
    };
})()"""
ON_AXIS = "() => [...document.querySelector('#chart canvas').written]"
PAINTED = """(name) => {
    const canvas = document.querySelector("#chart canvas");
    const probe = document.createElement("canvas").getContext("2d");
    probe.fillStyle = getComputedStyle(document.body).getPropertyValue(name).trim();
    probe.fillRect(0, 0, 1, 1);
    const colour = [...probe.getImageData(0, 0, 1, 1).data];
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let pixels = 0;
    for (let at = 0; at < data.length; at += 4) pixels += colour.every((each, channel) => data[at + channel] === each);
    return pixels;
}"""

pytestmark = IN_A_BROWSER


async def test_the_dashboard_shows_queues_decisions_hosts_and_a_chart(
    browser: Browser, serve, seed: Seed, engine: Engine
) -> None:
    play(seed, now_s=time.time())
    said = {"state": "draining", "cordoned_by": "ada", "cordon_reason": "new kernel"}
    seed.host_is("worker-2", labels=json.dumps({"zone": "b"}), memory_pressure=0.12, **said)
    async with transaction(engine) as conn:
        await save_hosts_wanted(conn, (HostsWanted(hosts=2, workers=5, templates=("rq",)),))
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        await expect(page.locator("#headline")).to_have_text(re.compile("^redis/reports is late"))
        reports = page.get_by_role("row").filter(has_text="redis/reports")
        await expect(reports).to_contain_text("99 % within 30 s")
        await expect(reports.locator("[data-part=figures]")).to_have_text("6 / 16 / 16")
        await expect(reports.locator("[data-part=figures]")).to_have_attribute(
            "title", re.compile("6 running, 16 desired, at most 16")
        )
        await expect(reports).to_contain_text("16 by profile's maximum")
        await expect(reports).to_contain_text("4 starting")
        webhooks = page.get_by_role("row").filter(has_text="redis/webhooks")
        await expect(webhooks).to_contain_text("no fresh data")
        await expect(webhooks.locator("[data-part=oldest]")).to_have_text("unknown")  # and not 0
        await expect(webhooks).to_contain_text("2 on unreachable hosts")
        await expect(page.get_by_role("row").filter(has_text="legacy-imports")).to_contain_text("no profile")
        decision = page.locator("#decisions > li").first
        await expect(decision).to_contain_text("6 → 16")
        await expect(decision).to_contain_text("160 jobs wait (the oldest for 22 s) and 6 jobs are running")
        await expect(decision).to_contain_text("The profile allows at most 16, so 24 become 16.")
        await expect(page.locator("#hosts > li").filter(has_text="worker-3")).to_contain_text("workers unknown")
        second = page.locator("#hosts > li").filter(has_text="worker-2")
        await expect(second.locator("[data-part=badge]")).to_have_text("draining")
        await expect(second).to_contain_text("zone b · memory pressure 12 % · draining by ada: new kernel")
        await expect(second).to_contain_text("8 × rq")
        await expect(page.locator("#hosts-wanted")).to_contain_text("2 hosts missing")
        await expect(page.locator("#chart canvas")).to_have_count(3)
        assert await page.evaluate(PAINTED, "--accent") > 100  # pixels of the line, which joins several readings
        await page.locator("#chart .u-over").first.hover(position={"x": 300, "y": 40})
        await expect(page.locator(".reading")).to_contain_text("At ")
        assert wrong == []


async def test_everything_can_be_done_by_keys(browser: Browser, serve, seed: Seed) -> None:
    play(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        await expect(page.locator("#chart-title")).to_contain_text("redis/reports")
        emails = page.get_by_role("button", name="redis/emails")
        await emails.focus()
        await page.keyboard.press("Enter")
        await expect(emails).to_have_attribute("aria-pressed", "true")
        await expect(page.locator("#chart-title")).to_contain_text("redis/emails")
        chart = page.get_by_role("slider")
        await chart.focus()
        await page.keyboard.press("PageDown")
        await page.keyboard.press("PageUp")
        await expect(page.locator(".reading")).to_contain_text("At ")
        assert "started within" in (await chart.get_attribute("aria-valuetext") or "")
        await page.locator("summary").first.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("details[open]")).to_contain_text("Reasons to have workers")
        await page.keyboard.press("Escape")
        await expect(page.locator("details[open]")).to_have_count(0)
        await expect(page.locator("#decisions summary").first).to_be_focused()
        assert wrong == []


async def test_every_control_is_reached_by_tab_and_shows_that_it_has_the_focus(
    browser: Browser, serve, seed: Seed
) -> None:
    play(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        while True:
            await expect(page.locator("#chart canvas").first).to_be_visible()
            controls = await page.evaluate(f"{CONTROLS}.length")
            seen = [await tabbed(page) for _ in range(controls + 1)]  # one goes to the browser, behind the last
            # A page that has meanwhile got or lost a control, as of a queue that was not read in time, is begun anew.
            if {each["controls"] for each in seen} == {controls}:
                break
            await page.reload()
        on_page = [each for each in seen if each["index"] >= 0]
        assert len(on_page) >= controls
        assert {each["style"] for each in on_page} == {"solid"}
        assert {each["index"] for each in on_page} == set(range(controls))


async def tabbed(page: Page) -> dict[str, Any]:
    """Which control has the focus after one Tab, how it shows that, and how many there are, all at one moment."""
    await page.keyboard.press("Tab")
    found: dict[str, Any] = await page.evaluate(
        f"""() => {{
            const controls = {CONTROLS}, focused = document.activeElement;
            const style = getComputedStyle(focused).outlineStyle;
            return {{ controls: controls.length, index: controls.indexOf(focused), style }};
        }}"""
    )
    return found


async def test_the_longest_wait_ages_between_readings(browser: Browser, serve, seed: Seed) -> None:
    """As the badge beside it does: a job goes on waiting, whether or not somebody reads the broker."""
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq", objective=SOON, stale_after_s=900))
    seed.sample("redis/mail", at_s=time.time() - 40, waiting_jobs=1, oldest_age_s=40.0)
    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        oldest = page.locator("[data-part=oldest]").first
        await expect(oldest).to_have_text(re.compile(r"^(8\d|9\d|1[01]\d) s$"))
        await expect(oldest).to_have_attribute("data-over", "true")
        await expect(page.locator("[data-part=badge]").first).to_have_text("late")


async def test_each_queue_of_a_pool_is_marked_by_its_own_objective(browser: Browser, serve, seed: Seed) -> None:
    """The pool's row shows the queue that is nearest to its own, and not the longest wait of all."""
    urgent, bulk, now_s = "redis/urgent", "redis/bulk", time.time()
    own = {bulk: Objective(target_s=9000)}
    seed.profile(
        Profile(
            pool="both", queues=(urgent, bulk), template="rq", objective=Objective(target_s=5), member_objectives=own
        )
    )
    for queue, age_s in ((urgent, 25.0), (bulk, 740.0)):
        seed.bucket(queue, at_s=now_s - 7, pickups_s=[age_s] * 5)
        seed.sample(queue, at_s=now_s, waiting_jobs=1, oldest_age_s=age_s)
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        await page.add_init_script(WRITTEN)
        await page.reload()
        pool = page.locator("tbody tr.pool").first
        await expect(pool.locator("[data-part=oldest]")).to_have_text(re.compile(r"^\d+ s$"))
        await expect(pool.locator("[data-part=oldest]")).to_have_attribute("data-over", "true")
        await expect(pool.locator("[data-part=pickup]")).to_have_text("p99 25 s")
        await expect(pool.locator("[data-part=sub]")).to_contain_text("2 queues, 1 with its own objective")
        late, in_time = (page.locator("tbody tr.member").filter(has_text=queue) for queue in (urgent, bulk))
        for part in ("oldest", "pickup"):
            await expect(late.locator(f"[data-part={part}]")).to_have_attribute("data-over", "true")
            await expect(in_time.locator(f"[data-part={part}]")).not_to_have_attribute("data-over", "true")
        await expect(in_time.locator("[data-part=sub]")).to_contain_text("99 % within")
        legend = page.locator("#chart .legend").first
        await expect(legend).to_contain_text("started within500 %")  # 25 s of 5 s, and not 740 s of 5 s
        await expect(legend).to_contain_text("objective100 % of each queue's own")
        assert "0 %" in await page.evaluate(ON_AXIS)
        await page.locator("#chart-open").click()
        charts = page.locator("[data-panel=wait]")
        title = "Wait before the start, as a part of each queue's objective"
        await expect(charts.get_by_role("heading")).to_have_text(title)
        await expect(charts.locator(".legend")).to_contain_text("longest wait500 %")
        await expect(charts.locator(".legend")).to_contain_text("objective100 %")
        assert wrong == []


async def test_jobs_that_nobody_can_count_are_not_shown_as_none(browser: Browser, serve, seed: Seed) -> None:
    one_pool(seed)
    for at_least, ago_s in ((None, 1.0), (3, 2.0)):
        known = QueueMetrics(
            queue="redis/mail",
            sampled_at_s=time.time(),
            waiting_jobs=None,
            waiting_min_jobs=at_least,
            oldest_age_s=None,
        )
        demands = (Demand(name="work_in_progress", slots=1.0),)
        decision = Decision(
            pool="mail",
            at_s=time.time(),
            target_workers=1,
            binding="work_in_progress",
            demands=demands,
            metrics=(known,),
        )
        seed.decision(decision, previous_workers=0, ago_s=ago_s)
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        decided = page.locator("#decisions > li")
        await expect(decided.nth(0)).to_contain_text(
            "The number of waiting jobs is unknown: running jobs and starting workers"
        )
        await expect(decided.nth(1)).to_contain_text("At least 3 jobs wait: running jobs and starting workers")
        assert wrong == []


async def test_workers_killed_at_work_are_shown_with_their_pool_and_their_host(
    browser: Browser, serve, seed: Seed
) -> None:
    play(seed, now_s=time.time())
    seed.execute(
        "insert into forced_ends (host_id, pool, workers) "
        "select host_id, 'images', 2 from hosts where name in ('worker-1', 'worker-2')"
    )
    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        images = page.locator("tr.pool").filter(has_text="images")
        await expect(images).to_contain_text("4 workers killed while busy")
        await expect(page.locator("tr.pool").filter(has_text="emails")).not_to_contain_text("killed")
        second = page.locator("#hosts > li").filter(has_text="worker-2")
        await expect(second).to_contain_text("Killed while busy, since it enrolled: 2 of images")


async def test_every_text_stands_out_from_what_is_behind_it(browser: Browser, serve, seed: Seed) -> None:
    """WCAG 2.2 AA, 4.5:1, for each text and background: live, with everything open, and when the connection is lost."""
    play(seed, now_s=time.time())
    async with serve() as (url, _, server), opened(browser, url) as (page, _):

        async def seen(shown: str) -> list[dict[str, Any]]:
            found = []
            for scheme in ("light", "dark"):
                await page.emulate_media(color_scheme=scheme)
                found += [{**each, "scheme": scheme} for each in await page.evaluate(shown)]
            return found

        await expect(page.locator("#chart canvas").first).to_be_visible()
        await page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        live = await seen(CONTRAST)
        states = await seen(EVERY_BADGE)
        await server.stop()
        await expect(page.locator("#link")).to_contain_text("Connection lost")
        lost = await seen(CONTRAST)
        await page.evaluate("document.getElementById('ask').showModal()")
        asked = await seen(CONTRAST)
    assert len(live) > 200
    assert [each for each in [*live, *states, *lost, *asked] if each["ratio"] < 4.5] == []


async def test_a_page_scrolls_only_downwards_and_no_objective_is_cut_off(browser: Browser, serve, seed: Seed) -> None:
    """On a laptop an objective read "95 % within …", beside a column of reasons that was half empty."""
    play(seed, now_s=time.time())
    cut_off = "all => all.filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.innerText)"
    async with serve() as (url, _, _), opened(browser, url, viewport={"width": 360, "height": 800}) as (page, wrong):
        await expect(page.locator("#chart canvas").first).to_be_visible()
        await page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        names = page.locator("#queues tr.pool th")
        await expect(names.first).to_contain_text("% within")
        for width in (1280, 1440):
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate("document.documentElement.scrollWidth") <= width, width
            assert await names.evaluate_all(cut_off) == [], width
        assert wrong == []


async def test_a_chart_whose_data_cannot_be_read_is_left_out_and_comes_with_the_data(
    browser: Browser, serve, seed: Seed
) -> None:
    play(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, _):
        await page.route("**/history?*", lambda route: route.fulfill(status=503, json={"detail": "Postgres is away"}))
        await page.goto(url)
        await expect(page.get_by_role("row").filter(has_text="redis/reports")).to_be_visible()
        await expect(page.locator("#chart-section")).to_be_hidden()
        await page.unroute("**/history?*")
        await expect(page.locator("#chart canvas").first).to_be_visible()


async def test_with_nothing_to_show_it_says_what_to_do(browser: Browser, serve) -> None:
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        await expect(page.locator("#queues-empty")).to_contain_text("headway collect")
        await expect(page.locator("#hosts-empty")).to_contain_text("headway agent")
        await expect(page.locator("#decisions-empty")).to_contain_text("Decisions begin with the first profile")
        await expect(page.locator("#reasons")).to_contain_text("No control plane has led yet")
        assert wrong == []


async def test_escape_closes_the_question_for_a_token_and_a_button_asks_again(
    browser: Browser, serve, seed: Seed
) -> None:
    play(seed, now_s=time.time())
    async with serve(token="right") as (url, _, _), opened(browser, url) as (page, _wrong):
        await expect(page.get_by_role("textbox", name="Token")).to_be_focused()
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Give a token").click()
        await page.get_by_role("textbox", name="Token").fill("right")
        await page.get_by_role("button", name="Continue").click()
        await expect(page.locator("#headline")).to_have_text(re.compile("^redis/reports is late"))
        await expect(page.locator("#give")).to_be_hidden()


async def test_a_token_is_asked_for_once_and_a_wrong_one_again(browser: Browser, serve, seed: Seed) -> None:
    play(seed, now_s=time.time())
    async with serve(token="right") as (url, _, _), opened(browser, url) as (page, _wrong):
        for token in ("wrong", "right"):
            await page.get_by_role("textbox", name="Token").fill(token)
            await page.get_by_role("button", name="Continue").click()
        await expect(page.locator("#headline")).to_have_text(re.compile("^redis/reports is late"))
        await page.reload()
        await expect(page.locator("#link")).to_have_text("Live")


async def test_the_table_and_the_chart_show_the_objectives_own_percentile(browser: Browser, serve, seed: Seed) -> None:
    """A span of 5 s has another; and decisions are those on the pool that the chart is of."""
    one_pool(seed, pickups_s=[9.0] * 5)
    seed.bucket("redis/mail", at_s=time.time(), pickups_s=[0.5] * 5, waiting_jobs=None, sampled_at_s=None)
    seed.profile(Profile(pool="other", queues=("redis/other",), template="rq", objective=SOON))
    for pool, ago_s in (("mail", 30.0), ("other", 1.0)):
        decision = Decision(pool=pool, at_s=time.time(), target_workers=1, binding="standing")
        seed.decision(decision, previous_workers=0, ago_s=ago_s)
    async with serve() as (url, _, _), opened(browser, url) as (page, _wrong):
        await page.add_init_script(WRITTEN)
        await page.reload()
        row = page.get_by_role("row").filter(has_text="redis/mail")
        await row.locator("[data-part=name]").click()
        await expect(row.locator("[data-part=pickup]")).to_have_text(re.compile(r"^p99 (8\.9|9) s$"))
        await expect(page.locator("#chart .legend").first).to_contain_text(re.compile(r"99 % started within(8\.9|9) s"))
        await expect(page.locator("#chart .legend").first).to_contain_text("half within0.5 s")
        await expect(page.locator("#decisions > li")).to_have_count(1)
        await expect(page.locator("#decisions > li")).to_contain_text("mail")
        await expect(page.locator("#decisions-title")).to_have_text("Decisions on redis/mail")
        assert {"0 s", "30 s", "60 s"} <= set(await page.evaluate(ON_AXIS))


async def test_what_is_wrong_with_the_installation_is_on_the_page_in_words(browser: Browser, serve, seed: Seed) -> None:
    """Of a few causes; `tests/proof/test_shown.py` makes all of them, and reads what the page is sent."""
    one_pool(seed)
    seed.profile(Profile(pool="other", queues=("second/other",), template="nowhere", workers_min=1, objective=SOON))
    seed.sample("second/other", at_s=time.time(), waiting_jobs=0, oldest_age_s=0.0)
    seed.execute(
        "update queue_samples set received_at = now() - interval '40 s' where queue = 'second/other';"
        "update pipeline_health set written_at = now() - interval '30 s', beat_at = now() + interval '1 hour'"
    )
    async with serve() as (url, _, _), opened(browser, url) as (page, _wrong):
        reasons = page.locator("#reasons")
        await expect(reasons).to_contain_text("hangs in a batch: it answers, and has not written for")
        await expect(reasons).to_contain_text("1 of 2 brokers has not been read for")
        await expect(reasons).to_contain_text("1 pool has no reachable host to run on: see headway top")
        await expect(page.locator("#headline")).to_have_text("second/other: no host")
        row = page.get_by_role("row").filter(has_text="second/other")
        await expect(row).to_contain_text("no reachable host has template 'nowhere': no host.toml names it")


async def test_workers_that_nobody_can_count_are_not_counted_as_none(browser: Browser, serve, seed: Seed) -> None:
    seed.sample("redis/mail", at_s=time.time(), waiting_jobs=3)  # of a broker that lists no workers
    seed.profile(Profile(pool="mail", queues=("redis/mail",), template="rq", mode=Mode.RECOMMEND))
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        await expect(page.locator("#subline")).to_contain_text("workers unknown on 0 hosts")
        assert wrong == []
