"""Chromium, and pages in it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from support.chromium import CHROMIUM, MISSING

QUIETLY = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    # A page of a test lives for seconds: no process of its own, and no code made fast for later.
    "--renderer-process-limit=1",
    "--in-process-gpu",
    "--js-flags=--no-opt",
]

CONTRAST = (Path(__file__).parent / "contrast.js").read_text()

TOKEN = "k7Qm2vX9tL4pZ8sR3wN6yB1c"  # of the control plane itself

IN_A_BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason=MISSING),
]


expect.set_options(timeout=20_000)  # a condition is met at once, or by a machine that others keep busy


@asynccontextmanager
async def opened(browser: Browser, url: str, **options: Any) -> AsyncIterator[tuple[Page, list[str]]]:
    """A page, and everything that went wrong on it."""
    context = await browser.new_context(**options)
    page = await context.new_page()
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    await page.goto(url)
    yield page, wrong
    await context.close()


async def sign_in(page: Page, token: str) -> None:
    """Give the token that the page asks for."""
    await page.get_by_role("textbox", name="Token").fill(token)
    await page.get_by_role("button", name="Continue").click()
    await expect(page.locator("#link")).to_have_text("Live")


async def token_of(page: Page, url: str, role: str) -> str:
    """A new token of a role."""
    headers = {"Authorization": f"Bearer {TOKEN}"}
    made = await page.request.post(f"{url}v1/tokens", data={"role": role, "name": role}, headers=headers)
    return str((await made.json())["secret"])
