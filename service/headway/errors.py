"""The errors Headway raises on purpose, divided by what the catcher can do.

    HeadwayError
    ├── Refused            the request is wrong; repeating it cannot help
    │   ├── Invalid        a value breaks a rule; every breach is listed
    │   ├── NotFound       the thing named does not exist
    │   ├── Conflict       the thing changed since it was read, or exists already
    │   ├── Unauthenticated  no token, or one that is not known
    │   ├── Forbidden      whoever asks is known, and may not do this
    │   └── Misconfigured  this process cannot start as it was set up
    └── Unavailable        the request is right, the moment is not; retry later
        └── Overloaded     accepting more would break a guarantee; retry after a pause

A message names the thing, what is wrong with it and what would do. Servers turn these into their own status codes, each
in one table; no other file knows a code.
"""

BREACHES_LISTED_MAX = 100
"""Whoever sends a hundred thousand mistakes needs no sentence about each, and would otherwise be sent megabytes."""

FORMULA_BEGINS = ("=", "+", "-", "@")


def printable(text: str) -> str:
    """``text`` in one line: names come from outside, and an ESC or a newline in one would forge what people read."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def csv_cell(text: str) -> str:
    """``text`` as a cell of CSV that no spreadsheet takes for a formula: a quote goes before what might begin one.

    A number stays a number, with its sign.

    Source: OWASP, "CSV Injection".
    """
    shown = printable(text)
    return f"'{shown}" if shown.startswith(FORMULA_BEGINS) and not _is_number(shown) else shown


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


class HeadwayError(Exception):
    """Anything Headway raises on purpose. Its text is one sentence for the person who reads it."""


class Refused(HeadwayError):
    """The request is wrong; repeating it cannot help."""


class Invalid(Refused):
    """One or more values break a rule.

    Beyond ``BREACHES_LISTED_MAX`` breaches the last sentence counts the others. ``where`` names what all of them are
    about, and goes before each in ``breaches``; ``rules`` are without it, for a caller that names that otherwise.
    """

    def __init__(self, *rules: str, where: str = "") -> None:
        more = (f"and {len(rules) - BREACHES_LISTED_MAX} more",) if len(rules) > BREACHES_LISTED_MAX else ()
        listed = rules[:BREACHES_LISTED_MAX]
        self.where = where
        self.rules = (*listed, *more)
        self.breaches = (*(f"{where}: {each}" for each in listed), *more) if where else self.rules
        super().__init__("; ".join(self.breaches))


class NotFound(Refused):
    """The thing named does not exist."""


class Conflict(Refused):
    """The thing changed since it was read, or exists already."""


class Unauthenticated(Refused):
    """No token came with the request, or one that is not known."""


class Forbidden(Refused):
    """Whoever asks may not do this, or asked by a way that requests are not taken from."""


class Misconfigured(Refused):
    """This process cannot start as it was set up."""


class Unavailable(HeadwayError):
    """The request is right, the moment is not; retry later."""


class Overloaded(Unavailable):
    """Accepting more now would break a guarantee already given; retry after a pause."""
