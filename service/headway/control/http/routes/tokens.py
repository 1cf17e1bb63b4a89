"""Tokens and the credentials of hosts: made, listed, replaced, revoked. For administrators."""

from fastapi import Request, Response, status

from headway.control.http.dependencies import NamePath, WithContext, body_of, model_of, operations, taking
from headway.control.http.problems import declared
from headway.control.http.schemas.token_bodies import HostCredentialOut, TokenBody, TokenMadeOut, TokenOut, TokensOut
from headway.errors import Conflict, Invalid, NotFound
from headway.store.access import tokens
from headway.store.access.credentials import revoke_host, rotate
from headway.store.engine import transaction

router = operations(prefix="/v1", tags=["tokens"])


@router.get("/tokens", summary="List tokens", responses=declared())
async def list_tokens(context: WithContext) -> TokensOut:
    """The tokens of people, programs and hosts that may join, valid or expired lately. Secrets are not shown."""
    async with transaction(context.engine) as conn:
        listed = [TokenOut.of(token) for token in await tokens.list_tokens(conn)]
    return TokensOut(tokens=listed, refused_calls=dict(context.callers.refused))


@router.post("/tokens", summary="Make a token", status_code=status.HTTP_201_CREATED, **taking(TokenBody, Conflict))
async def create_token(context: WithContext, request: Request) -> TokenMadeOut:
    """Make a token of a role, or a join token. Its secret is in the answer, and nowhere else ever again."""
    wanted = await body_of(request, lambda body: model_of(TokenBody, body).value())
    async with transaction(context.engine) as conn:
        token, secret = await tokens.create_token(conn, wanted, actor=context.actor)
    return TokenMadeOut.of(token, secret=secret)


@router.delete(
    "/tokens/{name}",
    summary="Revoke a token",
    status_code=status.HTTP_204_NO_CONTENT,
    responses=declared(Invalid, NotFound),
)
async def revoke_token(name: NamePath, context: WithContext) -> Response:
    """End a token. Within a second no control plane takes it any more."""
    async with transaction(context.engine) as conn:
        await tokens.revoke_token(conn, name, actor=context.actor)
    return Response(status_code=status.HTTP_204_NO_CONTENT)


@router.post("/hosts/{host}/rotate", summary="Replace a host's credential", responses=declared(Invalid, NotFound))
async def rotate_host_credential(host: NamePath, context: WithContext) -> HostCredentialOut:
    """Have a host's credential replaced with its next report. The old one serves until the new one is used."""
    async with transaction(context.engine) as conn:
        await rotate(conn, host, actor=context.actor)
    return HostCredentialOut(host=host, outcome="rotating")


@router.post("/hosts/{host}/revoke", summary="Revoke a host's credential", responses=declared(Invalid, NotFound))
async def revoke_host_credential(host: NamePath, context: WithContext) -> HostCredentialOut:
    """Cut a host off within a second. Its workers run on; it is let in again with a join token made for it."""
    async with transaction(context.engine) as conn:
        await revoke_host(conn, host, actor=context.actor)
    return HostCredentialOut(host=host, outcome="revoked")
