"""Which host a call may speak for, how a host is let in, and when it gets a new credential."""

import asyncio
import logging
from collections.abc import Collection

from headway.control.agents.enrolment_writer import EnrolmentWriter
from headway.control.auth.authenticator import LOCAL, Authenticator, Caller
from headway.store.access.credentials import Known, Role, host_facts, issue
from headway.store.access.enrolment import Joined, join
from headway.store.engine import Connection, Engine, transaction
from headway.store.hosts.hosts import Enrolment, enrol

AUTHORIZATIONS_AT_ONCE = 3  # calls of many hosts queue, so that other work finds a connection to the database free
OTHER_HOST = "its credential is another host's"
OTHER_CERTIFICATE = "its certificate is another host's"
NOT_OWN = "this host has a credential of its own, and the call does not show it"

log = logging.getLogger(__name__)


class HostAuthorization:
    """Lets hosts in, and keeps each from speaking for another."""

    def __init__(self, *, engine: Engine, callers: Authenticator) -> None:
        self._engine = engine
        self.callers = callers
        """Who may call at all."""
        self._joining = EnrolmentWriter[Joined](engine=engine)
        self._statements = asyncio.Semaphore(AUTHORIZATIONS_AT_ONCE)

    async def join(self, enrolment: Enrolment, caller: Caller, *, certified: Collection[str] = ()) -> Joined:
        """Make a host known. Where nobody is asked for anything, it needs no credential and gets none.

        Args:
            enrolment: who asks.
            caller: what the call shows.
            certified: the names in the certificate of the connection, none where none was asked for.

        Raises:
            Conflict: another machine has this name.
            Forbidden: what was shown does not entitle to this host.
            Unauthenticated: nothing was shown, or what does not serve.
        """
        if certified and enrolment.name not in certified:
            raise await self.callers.refusal(caller, why=OTHER_CERTIFICATE, subject=f"host {enrolment.name}")
        known = None
        if caller.role is Role.HOST:
            known = Known(sha256=caller.sha256, role=Role.HOST, name=caller.name, host_id=caller.host_id)

        async def asked(conn: Connection) -> Joined:
            if caller is LOCAL and not certified:
                return Joined(host_id=await enrol(conn, enrolment))
            return await join(conn, enrolment, caller=known, is_trusted=caller.is_shared or caller is LOCAL)

        joined = await self._joining.let_in(enrolment.name, asked)
        log.info(
            "enrolled host=%s host_id=%s agent_version=%s", enrolment.name, joined.host_id, enrolment.agent_version
        )
        return joined

    async def require_right(self, caller: Caller, host_id: str, *, certified: Collection[str] = ()) -> None:
        """Return if the call may speak for the host.

        Raises:
            Forbidden: it may not.
            NotFound: no host has this id.
        """
        if caller.role is Role.HOST:
            if caller.host_id != host_id and (await self.callers.anew(caller)).host_id != host_id:
                raise await self.callers.refusal(caller, why=OTHER_HOST, subject=f"host {host_id}")
            if certified and caller.name not in certified and (await self.callers.anew(caller)).name not in certified:
                raise await self.callers.refusal(caller, why=OTHER_CERTIFICATE, subject=f"host {caller.name}")
            return
        if caller is LOCAL and not certified:
            return
        async with self._statements, transaction(self._engine) as conn:
            name, has_own = await host_facts(conn, host_id)
        if caller.is_shared and has_own:
            raise await self.callers.refusal(caller, why=NOT_OWN, subject=f"host {name}")
        if certified and name not in certified:
            raise await self.callers.refusal(caller, why=OTHER_CERTIFICATE, subject=f"host {name}")

    async def renewed(self, caller: Caller) -> str:
        """A new credential, where that of the host is due to be replaced; else empty."""
        if not caller.wants_renewal:
            return ""
        async with self._statements, transaction(self._engine) as conn:
            secret = await issue(conn, caller.host_id, created_by="renewal")
        log.info("renewing the credential of host=%s", caller.name)
        return secret
