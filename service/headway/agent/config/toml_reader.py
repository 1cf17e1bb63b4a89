"""Reading a table of a TOML file so that one message names every mistake in it."""

import re
import signal
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from headway.scaling.mapping import is_number

EXPECTED_MEMORY = "expected bytes as a number, or a size as in '128MB' or '1.5GiB'"
NUMBER_MAX = 1e12
BYTES_MAX = NUMBER_MAX * 1024
TOML_NAME_CHARS_MAX = 200  # more is refused by the control plane, and with it the whole report of the host


class TomlTable:
    """One table of a file, its mistakes gathered under its name. A key that nobody asked for is one of them."""

    def __init__(self, body: Mapping[str, Any], name: str, breaches: list[str]) -> None:
        self._body = body
        self._name = name
        self._asked: set[str] = set()
        self.breaches = breaches

    def breach(self, what: str) -> None:
        """Note a mistake."""
        self.breaches.append(f"{self._name}: {what}")

    def has(self, key: str) -> bool:
        """Whether the table has the key."""
        return key in self._body

    def close(self) -> None:
        """Note the keys that nobody asked for, each with the one that it looks like, or with all there are."""
        for key in sorted(set(self._body) - self._asked):
            near = get_close_matches(key, self._asked, n=1)
            meant = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(self._asked))}"
            self.breach(f"unknown key {key!r}; {meant}")

    def table(self, key: str) -> Mapping[str, Any]:
        """The table at ``key``, empty if there is none."""
        value: Mapping[str, Any] = self._value(key, {}, lambda value: isinstance(value, dict), "expected a table")
        return value

    def tables(self, key: str) -> Mapping[str, Mapping[str, Any]]:
        """The named tables under ``key``."""

        def fits(value: Any) -> bool:
            return isinstance(value, dict) and all(isinstance(body, dict) for body in value.values())

        value: Mapping[str, Mapping[str, Any]] = self._value(key, {}, fits, f"expected tables, as in [{key}.NAME]")
        return value

    def inner(self, key: str) -> "TomlTable":
        """The table at ``key``, its mistakes gathered with those of this one."""
        return TomlTable(self.table(key), f"{self._name}: {key}", self.breaches)

    def text(self, key: str) -> str | None:
        """The text at ``key``, which is never empty."""

        def fits(value: Any) -> bool:
            return _is_text(value) and bool(value)

        value: str | None = self._value(key, None, fits, "expected a text")
        return value

    def words(self, key: str, *, is_needed: bool = False) -> tuple[str, ...]:
        """The texts of the list at ``key``, at least one where it is needed."""

        def fits(value: Any) -> bool:
            return isinstance(value, list) and all(map(_is_text, value)) and not (is_needed and not any(value[:1]))

        if is_needed and not self.has(key):
            self.breach(f"{key} is missing: the program and its arguments, as in {key} = ['rq', 'worker', 'mail']")
        return tuple(self._value(key, [], fits, "expected a list of texts, as in ['rq', 'worker']"))

    def number(self, key: str, *, default: float, most: float = NUMBER_MAX) -> float:
        """The number at ``key``, from 0 to ``most``."""

        def fits(value: Any) -> bool:
            return is_number(value) and 0 <= value <= most

        expected = "of at least 0" if most == NUMBER_MAX else f"from 0 to {most:.0f}"
        return float(self._value(key, default, fits, f"expected a number {expected}"))

    def number_if_any(self, key: str, *, most: float = NUMBER_MAX, is_zero_allowed: bool = False) -> float | None:
        """The number at ``key``, from 0 or more than 0 to ``most``; ``None`` if the table has none."""

        def fits(value: Any) -> bool:
            return is_number(value) and (0 < value <= most or (is_zero_allowed and value == 0))

        bounds = "of more than 0" + (f", at most {most:.0f}" if most < NUMBER_MAX else "")
        expected = f"expected a number {f'from 0 to {most:.0f}' if is_zero_allowed else bounds}"
        value = self._value(key, None, fits, expected)
        return None if value is None else float(value)

    def whole_if_any(self, key: str, *, least: int) -> int | None:
        """The whole number at ``key``; ``None`` where the table has none."""
        self._asked.add(key)
        return self.whole(key, default=least, least=least, most=int(NUMBER_MAX)) if self.has(key) else None

    def flag(self, key: str, *, default: bool) -> bool:
        """Whether ``key`` is true."""
        return bool(self._value(key, default, lambda value: isinstance(value, bool), "expected true or false"))

    def choice_if_any(self, key: str, choices: Iterable[str]) -> str | None:
        """The text at ``key``, one of ``choices``; ``None`` where the table has none."""
        known = [str(each) for each in choices]
        value: str | None = self._value(
            key, None, lambda value: isinstance(value, str) and value in known, f"expected one of {', '.join(known)}"
        )
        return value

    def whole(self, key: str, *, default: int, least: int, most: int) -> int:
        """The whole number at ``key``."""

        def fits(value: Any) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most

        return int(self._value(key, default, fits, f"expected a whole number from {least} to {most}"))

    def memory_bytes(self, key: str, *, default: int) -> int:
        """The size at ``key``, a number of bytes or a text as in '128MB'."""
        value = self._value(key, default, lambda value: memory_bytes(value) is not None, EXPECTED_MEMORY)
        return memory_bytes(value) or 0

    def signal(self, key: str, *, default: int) -> int:
        """The number of the signal that is named at ``key``."""
        value = self._value(
            key, None, lambda value: signal_number(value) is not None, "expected a signal, as in 'TERM'"
        )
        return signal_number(value) or default

    def environment(self, key: str) -> Mapping[str, str]:
        """The variables at ``key``. Their values appear in no message: they may be secret."""
        given = self.table(key)
        wrong = [
            name
            for name, value in given.items()
            if not (_is_text(value) and _is_text(name) and name and "=" not in name)
        ]
        for name in wrong:
            self.breach(f"{key}: {name!r} must be a name without '=' and its value a text in quotes")
        return {name: value for name, value in given.items() if name not in wrong}

    def labels(self, key: str) -> Mapping[str, str]:
        """The labels at ``key``, as in zone = 'a'."""
        given = self.table(key)
        wrong = [name for name, value in given.items() if not (is_name(name) and is_name(value))]
        for name in wrong:
            self.breach(
                f"{key}: {name!r} must be a name and have a text of at most {TOML_NAME_CHARS_MAX} characters, "
                f"as in {key} = {{zone = 'a'}}"
            )
        return {name: value for name, value in given.items() if name not in wrong}

    def _value(self, key: str, default: Any, fits: Callable[[Any], bool], expected: str) -> Any:
        self._asked.add(key)
        if key not in self._body:
            return default
        value = self._body[key]
        if not fits(value):
            self.breach(f"{key} = {value!r}: {expected}")
            return default
        return value


def is_name(value: Any) -> bool:
    """Whether ``value`` is a text by which the control plane can call something."""
    return _is_text(value) and 0 < len(value) <= TOML_NAME_CHARS_MAX


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and "\0" not in value


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B", re.IGNORECASE)


def memory_bytes(value: Any) -> int | None:
    """The bytes that ``value`` names, ``None`` where it names none. 'MB' is a million of them, 'MiB' 1024 × 1024."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if 0 <= value <= BYTES_MAX else None
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        return None
    number, prefix, binary = found.groups()
    power = " KMGT".index(prefix.upper() or " ")
    size = float(number) * (1024 if binary else 1000) ** power
    return int(size) if size <= BYTES_MAX else None


def signal_number(value: Any) -> int | None:
    """The number of the signal named ``value``, with or without SIG; ``None`` where there is none."""
    name = f"SIG{str(value).upper().removeprefix('SIG')}"
    return next((int(number) for number in signal.Signals if number.name == name), None)
