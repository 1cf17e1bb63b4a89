"""Who this host is to the control plane: let in by what it has, known by an id and a credential, and that kept."""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

from headway.agent.controlplane.client import ControlClient, Enrolled, Proof
from headway.agent.model import Identity
from headway.agent.state.state_dir import StateFolder
from headway.errors import Forbidden, HeadwayError, Unauthenticated, Unavailable

log = logging.getLogger(__name__)


class Membership:
    """Who this host is, asked for once by each agent process and whenever the control plane has forgotten.

    Threads may share it. ``moved`` receives who this host was and is at each enrolment, before anybody else.
    """

    def __init__(
        self,
        client: ControlClient,
        folder: StateFolder,
        *,
        identity: Identity,
        host_name: str,
        boot_id: str,
        join_token: str,
        moved: Callable[[Identity, Identity], None],
    ) -> None:
        self._client = client
        self._folder = folder
        self._host_name = host_name
        self._boot_id = boot_id
        self._join_token = join_token
        self._moved = moved
        self._enrolling = threading.Lock()
        self._lock = threading.Lock()
        # What follows is read and written under the second lock, and written by whoever holds the first.
        self._identity = identity
        self._is_let_in = False

    @property
    def now(self) -> tuple[Identity, bool]:
        """Who this host last was, and whether it still is, as far as is known."""
        with self._lock:
            return self._identity, self._is_let_in

    def identity(self) -> Identity:
        """Who this host is; it asks to be let in unless it was.

        Raises:
            HeadwayError: it is not let in, or nobody answers.
            Unavailable: who it is now cannot be written down.
        """
        with self._enrolling:
            before, is_let_in = self.now
            if is_let_in:
                return before
            given, proof = _let_in(
                self._client, before, join_token=self._join_token, host_name=self._host_name, boot_id=self._boot_id
            )
            # Nothing new is given to a host that has shown its own, nor where nobody is asked for anything.
            credential = given.credential or (proof.shown if proof.shown in _own(before) else before.credential)
            identity = replace(
                before,
                cluster_id=given.cluster_id,
                host_id=given.host_id,
                credential=credential,
                former_credential=before.credential if credential != before.credential else before.former_credential,
            )
            self._keep(before, identity)
            log.info("enrolled host=%s host_id=%s cluster_id=%s", self._host_name, given.host_id, given.cluster_id)
            return identity

    def renew(self, identity: Identity, credential: str) -> None:
        """Use a new credential from now on, once it cannot be lost any more."""
        fresh = replace(identity, credential=credential, former_credential=identity.credential)
        with self._enrolling:
            if self.now[0] != identity:
                return  # enrolled anew meanwhile
            try:
                self._folder.save_identity(fresh)
            except OSError as error:
                log.error("not written file=identity.json: %s; the old credential stays in use", error)  # noqa: TRY400
                return
            with self._lock:
                self._identity = fresh
        log.info("the control plane has renewed this host's credential")

    def forget(self, identity: Identity) -> None:
        """Ask anew who this host is, which was ``identity``."""
        with self._lock:
            if self._identity == identity:
                self._is_let_in = False

    def is_foreign(self, identity: Identity, cluster_id: str) -> bool:
        """Whether another cluster answers: then what runs is kept, and the host enrols there."""
        if cluster_id == identity.cluster_id:
            return False
        log.warning("another control plane answers: cluster_id=%s; what runs is kept, enrolling there", cluster_id)
        self.forget(identity)
        return True

    def _keep(self, before: Identity, identity: Identity) -> None:
        try:
            self._folder.save_identity(identity)
        except OSError as error:
            if identity.credential != before.credential:
                # Used and then lost, it would lock this host out. Unused, it can be asked for again.
                raise Unavailable(f"identity.json cannot be written in {self._folder.root}: {error}") from error
            log.error("not written file=identity.json: %s", error)  # noqa: TRY400 - its trace adds nothing
        self._moved(before, identity)
        with self._lock:
            self._identity, self._is_let_in = identity, True


def _own(identity: Identity) -> tuple[str, ...]:
    """The credentials of this host's own, the newest first."""
    return tuple(each for each in (identity.credential, identity.former_credential) if each)


def _let_in(
    client: ControlClient, before: Identity, *, join_token: str, host_name: str, boot_id: str
) -> tuple[Enrolled, Proof]:
    """What the control plane answers to the first proof that it takes, the best first, and that proof.

    Raises:
        HeadwayError: it takes none (the error is that of the best one), or it does not answer.
    """
    refusal: HeadwayError | None = None
    for proof in _proofs(before, join_token=join_token, has_token=client.has_token):
        try:
            given = client.enrol(
                host_name=host_name, host_id=before.host_id, boot_id=boot_id, agent_id=before.agent_id, proof=proof
            )
        except (Unauthenticated, Forbidden) as error:
            refusal = refusal or error
        else:
            return given, proof
    assert refusal is not None, "there is always one proof: the shared token, or none at all"
    raise refusal


def _proofs(before: Identity, *, join_token: str, has_token: bool) -> Iterator[Proof]:
    for credential in _own(before):
        yield Proof(shown=credential)
    if join_token:
        yield Proof(join_token=join_token)
    if has_token or not (_own(before) or join_token):
        yield Proof()
