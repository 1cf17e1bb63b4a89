"""What people write on a command line: ``1M`` jobs, ``200ms``, ``256M`` of memory, ``95%``, ``flash:rate=2``."""

import math
import re
import time
from contextlib import suppress
from datetime import UTC, datetime

from headway.errors import Invalid

_AMOUNT = re.compile(r"(\d[\d_,]*(?:\.\d+)?|\.\d+)(?:e(\d{1,2}))?\s*([a-zA-Zµ%]*)")

COUNTS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "b": 1e9}
SECONDS = {"": 1.0, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
BYTES = {
    f"{prefix}{ending}": float(1024**power)
    for power, prefix in enumerate(("", "k", "m", "g", "t"))
    for ending in ("", "b", "i", "ib")
}


def count(text: str, *, option: str) -> float:
    """A number of things, as in ``250000``, ``250k`` or ``1M``."""
    return _read(text, COUNTS, f"{option}={text!r} is no number, as in 250000, 250k or 1M")


def seconds(text: str, *, option: str, above_s: float | None = None) -> float:
    """A duration in seconds, longer than ``above_s``, that has a unit or is 0: a bare 10 may be meant as minutes."""
    is_what = "is no duration" if above_s is None else f"is no duration above {above_s:g}"
    refusal = f"{option}={text!r} {is_what}, as in 200ms, 10s or 3m"
    value = _read(text, SECONDS, refusal)
    if above_s is not None and value <= above_s:
        raise Invalid(refusal)
    if value and not text.strip()[-1].isalpha():
        raise Invalid(f"{option}={text!r} has no unit: {text.strip()}s, {text.strip()}m or {text.strip()}h")
    return value


def bytes_(text: str, *, option: str) -> int:
    """An amount of memory, as in ``256M`` or ``1.5G``, in powers of 1024."""
    return round(_read(text, BYTES, f"{option}={text!r} is no amount of memory, as in 256M or 1.5G"))


def moment_s(text: str | None, *, option: str) -> float | None:
    """A moment, Unix seconds: a date (UTC unless it says otherwise), Unix seconds, or how long ago, as in ``24h``."""
    if text is None:
        return None
    with suppress(ValueError):
        return float(text)
    with suppress(ValueError):
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    try:
        return time.time() - seconds(text, option=option)
    except Invalid as error:
        raise Invalid(f"{option}={text!r} is no moment, as in 2026-03-02T06:00, or 24h for a day ago") from error


def fraction(text: str, *, option: str) -> float:
    """A share, as in ``95%`` or ``0.95``."""
    return _read(text, {"": 1.0, "%": 0.01}, f"{option}={text!r} is no share, as in 95% or 0.95")


def described(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The kind of ``KIND:key=value,…``, and each key with its value, in order; without ``=`` that is empty."""
    kind, _, rest = text.partition(":")
    pairs = (pair.partition("=") for pair in rest.split(",") if pair)
    return kind, tuple((key.strip(), value.strip()) for key, _, value in pairs)


def _read(text: str, units: dict[str, float], refusal: str) -> float:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or match[3].lower() not in units:
        raise Invalid(refusal)
    value = float(match[1].replace("_", "").replace(",", "")) * 10.0 ** int(match[2] or 0) * units[match[3].lower()]
    if not math.isfinite(value):
        raise Invalid(refusal)
    return value
