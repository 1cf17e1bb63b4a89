"""What is in the brokers that there may be: every one is asked at once, and nobody is waited for long."""

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import redis

from headway.cli.setup.broker_candidates import Candidate, addresses_of, in_database, plain_address
from headway.collect.broker_errors import LoginRefused, RightMissing
from headway.collect.discovery import discover
from headway.collect.libraries import Libraries, Uninstalled
from headway.collect.redis_client import SCHEMES, connect, unavailable
from headway.collect.source import FoundQueue, Library
from headway.connections import Connection, is_url, shown, url_expected
from headway.errors import HeadwayError, Misconfigured, Unavailable

SURVEY_WITHIN_S = 3.5  # of the 5 s that the whole command may take
ASKED_WITHIN_S = 20.0  # of a broker that the user asks for: it may be far away, or on a machine with much else to do


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundBroker:
    """A broker that answered, read as the queues of one library."""

    candidate: Candidate
    library: Library
    queues: tuple[FoundQueue, ...]
    addresses: frozenset[tuple[str, int]] = frozenset()
    """Where it listens, in numbers; none of a socket in the file system."""
    clients: frozenset[tuple[str, int]] = frozenset()
    """The hosts and ports of those that are connected to this very database, where a Redis says so."""
    other_clients: frozenset[tuple[str, int]] = frozenset()
    """Of those that are connected to another of its databases."""


@dataclass(slots=True)
class Survey:
    """What was found, in the order of the candidates."""

    brokers: list[FoundBroker] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """A sentence for each broker that somebody named and that could not be read."""


@dataclass(slots=True)
class _Answer:
    """What became of one candidate."""

    candidate: Candidate
    brokers: list[FoundBroker] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_whole: bool = False


def survey(candidates: Sequence[Candidate], libraries: Libraries, *, within_s: float) -> Survey:
    """Ask every candidate as each library that reads its scheme. Who does not answer in time is among the unseen."""
    answers = [_Answer(candidate=each) for each in candidates]
    named = frozenset(each.place for each in candidates if not each.is_guess)
    threads = []
    for answer in answers:
        readers, problem = _readers(answer.candidate, libraries)
        if not readers and not answer.candidate.is_guess:
            answer.problems.append(problem)
        # Daemons: a broker that takes a connection and never answers shall not hold this process.
        threads.append(threading.Thread(target=_ask, args=(answer, readers, libraries, named), daemon=True))
    until_s = time.monotonic() + within_s
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until_s - time.monotonic()))
    found = Survey()
    for answer in answers:
        found.brokers += answer.brokers
        problems = list(answer.problems)
        if not answer.is_whole:
            problems.append(f"broker {shown(answer.candidate.url)} did not answer within {within_s:g} s")
        found.unseen += [f"{answer.candidate.source}: {each}" for each in problems]
    return found


def _readers(candidate: Candidate, libraries: Libraries) -> tuple[list[Library], str]:
    """The libraries that read such a URL, loaded here, before threads begin; and why there are not more."""
    if not is_url(candidate.url):
        return [], url_expected(candidate.url)
    connection = Connection(name="found", url=candidate.url, management_url=candidate.management_url)
    found, missing = [], []
    for name in libraries.names:
        try:
            found.append(libraries.of(replace(connection, library=name)))
        except Uninstalled as error:
            missing.append(str(error))
        except Misconfigured:
            continue  # of another scheme
    return found, "; ".join(missing) or f"no library reads {connection.scheme}:// here"


def _ask(
    answer: _Answer, readers: Sequence[Library], libraries: Libraries, named: frozenset[tuple[object, ...]]
) -> None:
    """Read one candidate as every library that can, and note in ``answer`` what came of it."""
    candidate = answer.candidate
    try:
        for each in _databases(candidate, named) if readers else ():
            clients, others = _clients(each)
            for library in readers:
                found = _read(each, library, libraries)
                answer.brokers.append(replace(found, clients=clients, other_clients=others))
    except Unavailable as error:
        # Where nobody said that there is a broker, only one that wants a password is worth a word.
        if not candidate.is_guess or isinstance(error, LoginRefused | RightMissing):
            answer.problems.append(str(error))
    except HeadwayError as error:
        if not candidate.is_guess:
            answer.problems.append(str(error))
    answer.is_whole = True


def _read(candidate: Candidate, library: Library, libraries: Libraries) -> FoundBroker:
    connection = Connection(
        name="found", url=candidate.url, library=library.name, management_url=candidate.management_url
    )
    refused = "; ".join(library.refusals(connection))
    if refused:
        raise Misconfigured(refused)
    queues = discover(connection, libraries).queues
    return FoundBroker(
        candidate=candidate,
        library=library,
        queues=tuple(each for each in queues if _is_text(each.name)),
        addresses=frozenset(_addresses(candidate.url)),
    )


def _databases(candidate: Candidate, named: frozenset[tuple[object, ...]]) -> Iterator[Candidate]:
    """``candidate``; of a Redis that nobody named, each database that has keys, those left out that somebody named."""
    connection = Connection(name="", url=candidate.url)
    if not candidate.is_guess or connection.scheme not in SCHEMES:
        yield candidate
        return
    client = connect(connection)
    try:
        keyspace = client.info("keyspace")
    except (redis.RedisError, OSError) as error:
        raise unavailable(connection, error) from error
    finally:
        client.close()
    for number in sorted({0, *(int(key[2:]) for key in keyspace if key[2:].isdecimal())}):  # 0: the usual one
        found = in_database(candidate, number)
        if found.place not in named:
            yield found


def _clients(candidate: Candidate) -> tuple[frozenset[tuple[str, int]], frozenset[tuple[str, int]]]:
    """Who is connected to this database of a Redis, and who to another; nobody where it does not say so."""
    connection = Connection(name="", url=candidate.url)
    if connection.scheme not in {"redis", "rediss"}:
        return frozenset(), frozenset()
    here: set[tuple[str, int]] = set()
    elsewhere: set[tuple[str, int]] = set()
    client = connect(connection)
    # A user that may not list clients, and a server or proxy that does not know the command, say nothing here.
    with suppress(redis.RedisError, OSError, ValueError, KeyError):
        database = str(client.connection_pool.connection_kwargs.get("db") or 0)
        for each in client.client_list(_type="normal"):
            host, _, port = each["addr"].rpartition(":")
            ends = here if each["db"] == database else elsewhere
            ends.add((plain_address(host.strip("[]")), int(port)))
    client.close()
    return frozenset(here), frozenset(elsewhere)


def _addresses(url: str) -> Iterator[tuple[str, int]]:
    for host, port in addresses_of(url):
        with suppress(OSError):
            for *_, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
                yield plain_address(str(address[0])), int(address[1])


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
