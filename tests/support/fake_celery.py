"""A program called ``celery`` that loads the modules of ``--include``, and a reporter for it to load."""

import sys
from pathlib import Path
from typing import Any

from headway.agent.config.templates import Ready, Reporter, Template

CELERY = f"""#!{sys.executable}
import importlib, sys, time
words = sys.argv[1:]
print("words", *words, flush=True)
if "--broken" in words:
    sys.exit("no broker")
for at, word in enumerate(words):
    if word == "--include":
        for name in words[at + 1].split(","):
            importlib.import_module(name)
print("celery@here ready.", flush=True)
time.sleep(600)
"""

REPORTER = """
import os, threading, time, json
path = os.environ["HEADWAY_REPORTER_PIPE"]
pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK)
def line(**more):
    try:
        os.write(pipe, json.dumps({"v": 1, "at_s": time.time(), **more}).encode() + b"\\n")
    except OSError:
        pass
def beats():
    n = 0
    while True:
        n += 1
        line(t="beat", n=n, part=0, parts=1, running=[], queues=["mail"], begun=0, ended=0, slots=4, stopping=False,
             loop=n, lost=0)
        time.sleep(0.2)
threading.Thread(target=beats, daemon=True).start()
"""
"""Says four times a second that the worker does nothing."""

DIES_LATE = """
import pathlib, time
while not pathlib.Path({death!r}).exists():
    time.sleep(0.01)
raise ModuleNotFoundError('No module named shop')
"""
"""As where the interpreter drops PYTHONPATH: Celery ends when the file is there, after it was taken for ready."""
DIES_UNNAMED = "import os, sys; print('boom', flush=True); os._exit(3)"
DIES_NAMED = "raise ImportError('No module named headway_celery_reporter')"


def celery_template(folder: Path, *words: str, name: str = "py", **values: Any) -> Template:
    """A template of it, with these words behind ``worker``. The program is written into ``folder``."""
    program = folder / "celery"
    program.write_text(CELERY)
    program.chmod(0o755)
    given = {
        "ready": Ready(pattern=r" ready\.$", timeout_s=60.0),
        "environment": {},
        "working_directory": "/",
        "reporter": Reporter.CELERY,
        "argv": (str(program), "--app", "shop", "worker", *words),
    }
    return Template(name=name, **{**given, **values})
