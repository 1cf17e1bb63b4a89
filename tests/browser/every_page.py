"""Every page of the dashboard, and an installation in which each of them has something to show."""

from playwright.async_api import Page, expect

from support.seed import Seed

DAY_S = 86_400.0

# The path, and a text that is there once the page shows what it read.
PAGES = {
    "now": ("", "what is wrong with emails"),
    "pool": ("pools/reports", "objective"),
    "queue": ("queues/redis/legacy-imports", "No profile names this queue"),
    "profiles": ("profiles", "emails"),
    "profile": ("profiles/emails", "Check the change"),
    "decisions": ("decisions", "workers_max"),
    "alerts": ("alerts", "what is wrong with emails"),
    "slo": ("slo", "96.7 %"),
    "hosts": ("hosts", "worker-3"),
    "host": ("hosts/worker-1", "Drain"),
    "system": ("system", "From broker to worker"),
    "account": ("account", "has no token"),
}


def past(seed: Seed, *, now_s: float) -> None:
    """What lies behind the scene: alerts that go on or ended, a silence's reason, days with late jobs."""
    for rule, pool, since_s, until_s in [
        ("pool_late", "emails", now_s - 300, None),
        ("crash_loop", "images", now_s - 90, None),
        ("failing", "reports", now_s - 9_000, now_s - 8_400),
    ]:
        seed.execute_with(
            "insert into alerts (rule, severity, pool, host, kind, since_s, until_s, summary, action) "
            "values (%s, 'page', %s, '', '', %s, %s, %s, 'See its workers: `headway describe pool emails`.')",
            rule, pool, since_s, until_s, f"what is wrong with {pool}",
        )  # fmt: skip
    for day, late_jobs in enumerate([0, 4, 120, 8]):
        seed.execute_with(
            "insert into pool_attainment values ('emails', %s, 1000, %s)",
            now_s // DAY_S * DAY_S - day * DAY_S,
            late_jobs,
        )


async def show(page: Page, url: str, name: str) -> None:
    """Open the page of this name, and wait until it shows what it read."""
    path, text = PAGES[name]
    await page.goto(url + path)
    await expect(page.locator("#link")).to_have_text("Live")
    await expect(page.locator("#main")).to_contain_text(text)
    if name == "pool":
        await expect(page.locator("[data-panel=wait] .legend")).to_contain_text("objective30 s")
