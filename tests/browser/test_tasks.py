"""Twelve tasks of whoever is on call, in a real browser, as they would do them.

1. Find the breached queue and its cause in one click.   7. Go through the loss of the control plane,
2. Scale for ten minutes.                                8. of Spark, killed,
3. Edit a profile with its diff.                         9. of Spark, hung,
4. Drain a host.                                        10. of an agent,
5. Read last Tuesday.                                   11. of a broker.
6. Sign in, as viewer and as operator.                  12. See that all jobs fail.

What is lost here is rows that grow old; `tests/proof/test_shown.py` ends and stops the real processes.
"""

import json
import re
import time
from datetime import UTC, datetime, timedelta

from playwright.async_api import Browser, expect

from browser.pages import IN_A_BROWSER, TOKEN, opened, sign_in, token_of
from browser.scene import one_pool, play
from headway.scaling.measure import sketch_index
from headway.scaling.model import Decision, Demand, QueueMetrics, Step
from support.seed import Seed

pytestmark = IN_A_BROWSER

SETTLED = """
    update queue_buckets set bucket_s = floor(extract(epoch from now()) / 5) * 5 - 10;
    update queue_samples set received_at = now() + interval '1 hour';
    update pipeline_health set written_at = now() + interval '1 hour', beat_at = now() + interval '1 hour';
    update leader_heartbeat set renewed_at = now() + interval '1 hour';
    update hosts set reported_at = now() + interval '1 hour', lease_ends_at = now() + interval '2 hours';
"""
"""All is well, for longer than a test takes."""
# What is lost -> how that shows in the database, and what the page says of it.
LOST = {
    "Spark, killed": (
        "update pipeline_health set written_at = now() - interval '48 s', beat_at = now() - interval '48 s'",
        "not responding: no heartbeat for",
    ),
    "Spark, hung": (
        "update pipeline_health set written_at = now() - interval '48 s'",
        "hangs in a batch: it answers, and has not written for",
    ),
    "an agent": (
        "update hosts set reported_at = now() - interval '85 s', lease_ends_at = now() - interval '40 s'",
        "1 host is unreachable, the last report",
    ),
    "a broker": (
        "update queue_samples set received_at = now() - interval '48 s'",
        "queue that a profile names has been read for",
    ),
}


async def test_1_the_breached_queue_and_its_cause_are_one_click_away(browser: Browser, serve, seed: Seed) -> None:
    play(seed, now_s=time.time())
    async with serve() as (url, _, _), opened(browser, url) as (page, wrong):
        await expect(page.locator("#headline")).to_have_text(re.compile("^redis/reports is late"))
        first = page.locator("tbody tr").first
        await expect(first.locator("[data-part=badge]")).to_have_text("late")
        await first.get_by_role("button", name="redis/reports").click()
        decided = page.locator("#decisions > li").first
        await expect(decided).to_contain_text("160 jobs wait (the oldest for 22 s) and 6 jobs are running")
        await expect(decided).to_contain_text("The profile allows at most 16, so 24 become 16.")
        assert wrong == []


async def test_2_3_4_6_an_operator_scales_edits_a_profile_and_drains(browser: Browser, serve, seed: Seed) -> None:
    play(seed, now_s=time.time())
    async with serve(token=TOKEN) as (url, _, _), opened(browser, url) as (page, _wrong):
        await sign_in(page, await token_of(page, url, "operator"))
        await page.goto(f"{url}profiles/emails")
        await page.get_by_role("button", name="Scale", exact=True).click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Workers").fill("9")
        await dialog.get_by_label("Ends by itself").select_option("10 minutes")
        await dialog.get_by_label("Reason").fill("a campaign")
        await dialog.get_by_role("button", name="Scale").click()
        await expect(page.locator("main .summary")).to_contain_text("set: 9 workers until")
        stored = await (await page.request.get(f"{url}v1/profiles/emails")).json()
        assert 500 < stored["override"]["until_s"] - time.time() <= 600

        text = page.locator("#profile-text")
        before = await text.input_value()
        await text.fill(before.replace('"workers_max": 12', '"workers_max": -1'))
        await page.get_by_role("button", name="Check the change").click()
        await expect(page.locator("main .problem").first).to_contain_text("workers_max")
        await text.fill(before.replace('"workers_max": 12', '"workers_max": 14'))
        await page.get_by_role("button", name="Check the change").click()
        await expect(dialog.get_by_role("row", name="workers_max 12 14")).to_be_visible()
        await dialog.get_by_role("button", name="Change it").click()
        await expect(page.locator("main .summary")).to_contain_text("to 14 workers")

        await page.goto(f"{url}hosts/worker-1")
        await page.get_by_role("button", name="Drain").click()
        await dialog.get_by_label("Ends by itself").select_option("4 hours")
        await dialog.get_by_label("Reason").fill("a new kernel")
        await dialog.get_by_role("button", name="Drain").click()
        said = re.compile(r"draining by token operator until \d\d:\d\d: a new kernel")
        await expect(page.locator("main")).to_contain_text(said)


async def test_5_last_tuesday_is_read_with_its_waits_decisions_and_attainment(
    browser: Browser, serve, seed: Seed
) -> None:
    now_s = time.time()
    today = datetime.fromtimestamp(now_s, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    tuesday = today - timedelta(days=(today.weekday() - 1) % 7 or 7)
    play(seed, now_s=now_s)
    _surge(seed, at_s=tuesday.timestamp() + 9.5 * 3600, now_s=now_s)
    seed.execute_with("insert into pool_attainment values ('reports', %s, 1000, 120)", tuesday.timestamp())
    async with serve() as (url, _, _), opened(browser, url, timezone_id="UTC") as (page, wrong):
        await page.get_by_role("link", name="Longer, with decisions").click()
        await page.get_by_label("Day").fill(f"{tuesday:%Y-%m-%d}")
        await expect(page).to_have_url(re.compile(rf"from={tuesday.timestamp():.0f}&until=\d+$"))
        await expect(page.locator(".reading")).to_contain_text(f"{tuesday:%a} {tuesday.day} {tuesday:%b} 00:00 to")
        await expect(page.locator("#main .decisions > li")).to_have_count(1)
        await page.locator("#main .decisions summary").click()
        await expect(page.locator("#main .decisions")).to_contain_text("7,777 jobs wait")
        await page.get_by_text("The data as a table").click()
        table = page.get_by_role("region", name="The data as a table")
        await expect(table.get_by_role("row").filter(has_text="7,777")).to_contain_text("09:30")
        await expect(page.get_by_label("Day")).to_have_value(f"{tuesday:%Y-%m-%d}")

        await page.goto(f"{url}slo")
        days = page.locator("details[data-pool=reports]")
        await days.locator("summary").click()
        await expect(days.get_by_role("row").filter(has_text=f"{tuesday:%Y-%m-%d}")).to_contain_text("88 %")
        assert wrong == []


def _surge(seed: Seed, *, at_s: float, now_s: float) -> None:
    """One bad minute of a week ago, and what was decided in it."""
    seed.execute_with(
        "insert into rollup_minutes (queue, bucket_s, arrived_jobs, started_jobs, waiting_jobs, sampled_at_s, "
        "pickup_sketch) values ('redis/reports', %s, 90, 90, 7777, %s, %s)",
        at_s, at_s + 55, json.dumps({sketch_index(48.0): 90}),
    )  # fmt: skip
    seed.execute_with("update rollup_progress set minutes_until_s = %s", now_s // 60 * 60)
    metrics = QueueMetrics(queue="redis/reports", sampled_at_s=at_s, waiting_jobs=7777, oldest_age_s=48.0)
    decision = Decision(
        pool="reports",
        at_s=at_s,
        target_workers=16,
        binding="workers_max",
        demands=(Demand(name="backlog_drain", slots=40),),
        steps=(Step(name="wanted", workers=40), Step(name="workers_max", workers=16)),
        metrics=(metrics,),
        running_workers=4,
    )
    seed.decision(decision, previous_workers=4, ago_s=now_s - at_s - 20)


async def test_6_a_viewer_sees_the_controls_disabled_and_why_and_signs_out(browser: Browser, serve, seed: Seed) -> None:
    play(seed, now_s=time.time())
    async with serve(token=TOKEN) as (url, _, _), opened(browser, url) as (page, _wrong):
        await sign_in(page, await token_of(page, url, "viewer"))
        await page.goto(f"{url}profiles/emails")
        await expect(page.get_by_text("Your role is viewer").first).to_be_visible()
        await expect(page.get_by_role("button", name="Scale", exact=True)).to_be_disabled()
        await expect(page.locator("#profile-text")).not_to_be_editable()
        await page.goto(f"{url}account")
        await expect(page.get_by_text("Read everything but the audit log")).to_be_visible()
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("textbox", name="Token")).to_be_focused()


async def test_7_to_11_each_part_that_is_lost_is_named_nothing_is_green_and_it_comes_back(
    browser: Browser, serve, seed: Seed
) -> None:
    one_pool(seed)
    seed.execute(SETTLED)
    async with serve() as (url, feed, server):
        port = server.port
        async with opened(browser, url) as (page, _wrong):
            headline, reasons = page.locator("#headline"), page.locator("#reasons")
            await expect(headline).to_contain_text("The objective is met")
            for lost, (sql, said) in LOST.items():
                seed.execute(sql)
                feed.publish()
                await expect(reasons, lost).to_contain_text(said)
                await expect(headline, lost).to_contain_text("Nobody is known to be late")
                if lost == "an agent":
                    await expect(page.locator("#hosts > li")).to_contain_text("workers unknown")
                seed.execute(SETTLED)
                feed.publish()
                await expect(headline, lost).to_contain_text("The objective is met")
            await server.stop()
            await expect(page.locator("#link")).to_contain_text("Connection lost, retrying")
            await expect(page.locator("#link")).to_contain_text("Shown is what was known at")
            await expect(headline).to_contain_text("Last known")
            async with serve(port=port):
                await expect(page.locator("#link")).to_have_text("Live", timeout=20_000)
                await expect(headline).to_contain_text("The objective is met")


async def test_12_jobs_that_all_fail_are_the_headline_and_the_row_says_how_many(
    browser: Browser, serve, seed: Seed
) -> None:
    one_pool(seed, finished_jobs=0, failed_jobs=40)
    async with serve() as (url, _, _), opened(browser, url) as (page, _wrong):
        await expect(page.locator("#headline")).to_have_text("redis/mail: failing")
        row = page.get_by_role("row").filter(has_text="redis/mail")
        await expect(row.locator("[data-part=badge]")).to_have_text("failing")
        await expect(row).to_contain_text("40 of 40 jobs (100 %) failed in the last 5 min")
