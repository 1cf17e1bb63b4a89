"""How a host is let in: it shows what it has, the best first, until the control plane takes one."""

from collections.abc import Iterator

from headway.agent.controlplane.client import ControlClient, Enrolled, Proof
from headway.agent.model import Identity
from headway.errors import Forbidden, HeadwayError, Unauthenticated


def own(identity: Identity) -> tuple[str, ...]:
    """The credentials of this host's own, the newest first."""
    return tuple(each for each in (identity.credential, identity.former_credential) if each)


def let_in(
    client: ControlClient, before: Identity, *, join_token: str, host_name: str, boot_id: str
) -> tuple[Enrolled, Proof]:
    """What the control plane answers to the first proof that it takes, and that proof.

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
    for credential in own(before):
        yield Proof(shown=credential)
    if join_token:
        yield Proof(join_token=join_token)
    if has_token or not (own(before) or join_token):
        yield Proof()
