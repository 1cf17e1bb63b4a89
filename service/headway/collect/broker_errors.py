"""Why a broker cannot be read, where a person can do something about it other than start it."""

from headway.errors import Unavailable


class LoginRefused(Unavailable):
    """A broker does not take the login that it was given."""


class RightMissing(Unavailable):
    """A broker takes the login, which may not do what was asked for."""


class Untrusted(Unavailable):
    """A broker shows a certificate that is not trusted here."""
