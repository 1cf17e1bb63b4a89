"""What one control plane knows by itself that is not as it should be: nobody else can say so for it."""

import time
from collections.abc import Iterator

from headway.control.auth.authenticator import ENDED_SHOWN_S, Authenticator
from headway.control.auth.certificates import Certificates
from headway.control.ingest.clock_skew import WRONG_SHOWN_S
from headway.control.ingest.ingest import Ingest
from headway.control.scheduler.maintenance import Maintenance
from headway.scaling.conditions.pool_conditions import Cause
from headway.scaling.explain import counted, duration

REASON_EXPIRES_WITHIN_S = 86_400.0  # from then on it is an incident; the log and /metrics warn weeks before


def local_reasons(
    ingest: Ingest, callers: Authenticator, *, upkeep: Maintenance | None, certificates: Certificates | None
) -> list[Cause]:
    """A reason for each of upkeep that fails, a certificate that ends, credentials that have, and wrong clocks."""
    return [*_upkeep(upkeep), *_certificate(certificates), *_credentials(callers), *_clocks(ingest)]


def _upkeep(upkeep: Maintenance | None) -> Iterator[Cause]:
    for part, why in {} if upkeep is None else upkeep.failing.items():
        yield Cause("upkeep", f"upkeep of {part} fails: {why}; see the control plane's log")


def _certificate(certificates: Certificates | None) -> Iterator[Cause]:
    left_s = None if certificates is None else certificates.ends_at_s - time.time()
    if left_s is None or left_s > REASON_EXPIRES_WITHIN_S:
        return
    when = f"expires in {duration(left_s)}" if left_s > 0 else f"expired {duration(-left_s)} ago: no client takes it"
    yield Cause("certificate", f"the control plane's certificate {when}; `headway keys server NAME` makes another")


def _credentials(callers: Authenticator) -> Iterator[Cause]:
    calls = callers.ended.count
    if calls:
        shown = "used a token or credential that was revoked or has expired"
        who = "the audit log says from where: give that role another one, or end it"
        yield Cause("credentials", f"{counted(calls, 'call')} {shown} in the last {duration(ENDED_SHOWN_S)}; {who}")


def _clocks(ingest: Ingest) -> Iterator[Cause]:
    wrong_s = ingest.wrong_clocks_s()
    if wrong_s:
        senders = f"{counted(len(wrong_s), 'sender')} of telemetry"
        way = "behind" if wrong_s[0] > 0 else "ahead of"
        off = f"the clock of {senders} is wrong, {duration(abs(wrong_s[0]))} {way} this control plane's"
        yield Cause("clock", f"{off}: times of readings and jobs are corrected or off by as much")
    elif ingest.future_times.count:
        times = counted(ingest.future_times.count, "time")
        text = f"{times} of jobs in the last {duration(WRONG_SHOWN_S)} lay in the future and had to be corrected"
        yield Cause("clock", f"{text}: the clock of a host that runs jobs, or of a sender, is ahead")
    elif ingest.backward_waits.count:
        text = f"{counted(ingest.backward_waits.count, 'job')} of the last {duration(WRONG_SHOWN_S)} began before"
        whose = "the clock of a host that runs jobs is behind, and pickup times are too short by as much"
        yield Cause("clock", f"{text} being enqueued, by the clocks of both: {whose}")
