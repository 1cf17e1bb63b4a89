"""How the values of ``host.toml`` are written: sizes, signals, command lines, variables and labels."""

import re
import signal
from collections.abc import Mapping
from typing import Annotated, Any

from headway.errors import Invalid
from headway.scaling.keys import Form, is_text, text

EXPECTED_MEMORY = "expected bytes as a number, or a size as in '128MB' or '1.5GiB'"
NUMBER_MAX = 10**12
BYTES_MAX = NUMBER_MAX * 1024
TOML_NAME_CHARS_MAX = 200  # more is refused by the control plane, and with it the whole report of the host
NAME_SCHEMA = {"type": "string", "minLength": 1, "maxLength": TOML_NAME_CHARS_MAX}
TEXTS_SCHEMA = {"type": "array", "items": {"type": "string"}}

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B", re.IGNORECASE)


def is_name(value: Any) -> bool:
    """Whether ``value`` is a text by which the control plane can call something."""
    return is_text(value) and 0 < len(value) <= TOML_NAME_CHARS_MAX


def memory_bytes(value: Any) -> int:
    """The bytes that ``value`` names: 'MB' is a million of them, 'MiB' 1024 × 1024. Raises ``ValueError``."""
    size: float = -1
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (found := _SIZE.fullmatch(value.strip())):
        number, prefix, binary = found.groups()
        size = float(number) * (1024 if binary else 1000) ** " KMGT".index(prefix.upper() or " ")
    if not 0 <= size <= BYTES_MAX:
        raise ValueError(EXPECTED_MEMORY)
    return int(size)


def signal_number(value: Any) -> int:
    """The number of the signal named ``value``, with or without SIG. Raises ``ValueError`` where there is none."""
    name = f"SIG{str(value).upper().removeprefix('SIG')}"
    for number in signal.Signals:
        if number.name == name:
            return int(number)
    raise ValueError("expected a signal, as in 'TERM'")


def _pattern(value: Any) -> str:
    try:
        re.compile(text(value))
    except re.error as error:
        raise Invalid(f"ready_pattern {value!r} is no regular expression: {error}") from None
    return str(value)


def _umask(value: Any) -> int:
    if not isinstance(value, str) or not re.fullmatch(r"0?[0-7]{3}", value):
        raise TypeError("expected three octal digits in quotes, as in '0027'")
    return int(value, 8)


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(map(is_text, value)):
        raise TypeError("expected a list of texts, as in ['rq', 'worker']")
    return tuple(value)


def _program(value: Any) -> tuple[str, ...]:
    words = _texts(value)
    return words if any(words[:1]) else _texts(None)


def _table(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError("expected a table")
    return value


def _variables(value: Any) -> Mapping[str, str]:
    wrong = [
        name
        for name, text in _table(value).items()
        if not (is_text(text) and is_text(name) and name and "=" not in name)
    ]
    if wrong:
        raise Invalid(
            *(f"environment: {name!r} must be a name without '=' and its value a text in quotes" for name in wrong)
        )
    return dict(value)


def _labels(value: Any) -> Mapping[str, str]:
    wrong = [name for name, text in _table(value).items() if not (is_name(name) and is_name(text))]
    rule = f"must be a name and have a text of at most {TOML_NAME_CHARS_MAX} characters, as in labels = {{zone = 'a'}}"
    if wrong:
        raise Invalid(*(f"labels: {name!r} {rule}" for name in wrong))
    return dict(value)


def _templates(value: Any) -> Mapping[str, Mapping[str, Any]]:
    if not isinstance(value, dict) or not all(isinstance(table, dict) for table in value.values()):
        raise TypeError("expected tables, as in [templates.NAME]")
    return value


Table = Annotated[Mapping[str, Any], Form(read=_table)]
Templates = Annotated[Mapping[str, Mapping[str, Any]], Form(read=_templates)]
Size = Annotated[
    int,
    Form(
        read=memory_bytes,
        schema={
            "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "^[0-9.]+ *[kKmMgGtT]?i?[bB]$"}]
        },
    ),
]
SignalNumber = Annotated[int, Form(read=signal_number, schema={"type": "string", "pattern": "^[A-Za-z0-9+-]+$"})]
Umask = Annotated[int, Form(read=_umask, schema={"type": "string", "pattern": "^0?[0-7]{3}$"})]
Pattern = Annotated[str, Form(read=_pattern, schema={"type": "string", "minLength": 1})]
Texts = Annotated[tuple[str, ...], Form(read=_texts, schema=TEXTS_SCHEMA)]
Program = Annotated[
    tuple[str, ...],
    Form(
        read=_program,
        schema={**TEXTS_SCHEMA, "minItems": 1},
        missing="the program and its arguments, as in argv = ['rq', 'worker', 'mail']",
    ),
]
Variables = Annotated[
    Mapping[str, str],
    Form(
        read=_variables,
        schema={
            "type": "object",
            "additionalProperties": {"type": "string"},
            "propertyNames": {"pattern": "^[^=]+$"},
        },
        is_secret=True,
    ),
]
"""Their values may be passwords."""
Labels = Annotated[
    Mapping[str, str],
    Form(read=_labels, schema={"type": "object", "additionalProperties": NAME_SCHEMA, "propertyNames": NAME_SCHEMA}),
]
