"""A typed client of the HTTP API, for programs of yours: the extra ``client``.

``headway.client.v1`` is generated from the API's description while the wheel is built: a module an operation, a class a
body.
"""

from headway.client.connection import ApiProblem, answered, connected

__all__ = ["ApiProblem", "answered", "connected"]
