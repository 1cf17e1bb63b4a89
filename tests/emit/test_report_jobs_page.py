"""The programs of docs/how-to/report-jobs.md, as they are printed."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.http_control import HttpControl, serving
from support.tree import ROOT

pytestmark = pytest.mark.e2e

PAGE = (ROOT / "docs" / "how-to" / "report-jobs.md").read_text()
PROGRAMS = dict(re.findall(r"```(python|js|php|ruby)\n(.*?)```", PAGE, flags=re.DOTALL))
RUN_BY = {"python": sys.executable, "js": "node", "php": "php", "ruby": "ruby"}
SUFFIXES = {"python": "py", "js": "mjs", "php": "php", "ruby": "rb"}


def ran(language: str, folder: Path, url: str) -> None:
    file = folder / f"report.{SUFFIXES[language]}"
    file.write_text(PROGRAMS[language])
    environment = {**os.environ, "HEADWAY_URL": url, "HEADWAY_TOKEN": ""}
    subprocess.run([RUN_BY[language], str(file)], env=environment, check=True, timeout=60)


@pytest.mark.parametrize("language", RUN_BY)
def test_a_program_reports_what_it_says(language: str, tmp_path: Path) -> None:
    if shutil.which(RUN_BY[language]) is None:
        pytest.skip(f"no {RUN_BY[language]} on this machine")
    with serving(HttpControl()) as control:
        ran(language, tmp_path, control.url)
        events = control.until(1)
    assert {(event["queue"], event["job_id"]) for event in events} == {("shop/mail", "job 17")}
    assert [event["kind"] for event in events] == ["enqueued", "started", "finished"][: len(events)]


@pytest.mark.parametrize("language", RUN_BY)
def test_a_program_goes_on_where_nobody_takes_telemetry(language: str, tmp_path: Path) -> None:
    if shutil.which(RUN_BY[language]) is None:
        pytest.skip(f"no {RUN_BY[language]} on this machine")
    ran(language, tmp_path, "http://127.0.0.1:1")
