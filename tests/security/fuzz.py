"""Calls of the gRPC port with bytes that say nothing, or something at the edge."""

import random
from collections import Counter
from collections.abc import Mapping

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from headway.wire.v1 import agent_pb2, telemetry_pb2
from headway.wire.v1.agent_pb2_grpc import AgentServiceStub
from security.hosts import Host
from security.planes import TOKEN, Plane

METHODS = {
    "/headway.wire.v1.AgentService/Enrol": agent_pb2.EnrolRequest,
    "/headway.wire.v1.AgentService/Report": agent_pb2.ReportRequest,
    "/headway.wire.v1.AgentService/Poll": agent_pb2.PollRequest,
    "/headway.wire.v1.TelemetryService/Ingest": telemetry_pb2.IngestRequest,
}

SHOWN = (("authorization", f"Bearer {TOKEN}"),)

DEFECTS = {grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}

TEXTS = ["", "a", "\0", "\x1b[2J", "x" * 600, "h\n", "\u202e", "🙂"]

EDGES = {
    FieldDescriptor.CPPTYPE_STRING: TEXTS,
    FieldDescriptor.CPPTYPE_DOUBLE: [float("nan"), float("inf"), -1.0, 0.0, 1e308, 1e-320],
    FieldDescriptor.CPPTYPE_UINT64: [0, 1, 2**63, 2**64 - 1],
    FieldDescriptor.CPPTYPE_UINT32: [0, 1, 2**32 - 1],
    FieldDescriptor.CPPTYPE_INT64: [0, -1, 2**63 - 1],
    FieldDescriptor.CPPTYPE_ENUM: [0, 1, 3, 77],
    FieldDescriptor.CPPTYPE_BOOL: [True, False],
}


def filled(rng: random.Random, message: Message, known: Mapping[str, str]) -> Message:
    """``message`` with numbers and texts from the edges in about half of its fields; often with what is ``known``."""
    for field in rng.sample(list(message.DESCRIPTOR.fields), len(message.DESCRIPTOR.fields) // 2 + 1):
        value = getattr(message, field.name)
        if field.cpp_type in EDGES and not field.is_repeated:
            setattr(message, field.name, rng.choice(EDGES[field.cpp_type]))
        elif hasattr(value, "add"):
            for _ in range(rng.choice([1, 1, 1, 2, 40])):
                filled(rng, value.add(), known)
        elif hasattr(value, "items"):
            value[rng.choice(TEXTS)] = rng.choice(TEXTS)
        elif isinstance(value, Message):
            filled(rng, value, known)
    for name in {field.name for field in message.DESCRIPTOR.fields} & known.keys():
        if rng.random() < 0.7:
            setattr(message, name, known[name])
    return message


def mutated(rng: random.Random, known: Mapping[str, str]) -> tuple[str, bytes]:
    """A method and bytes that may be its message, cut or with some of them changed."""
    method = rng.choice(list(METHODS))
    encoded = bytearray(filled(rng, METHODS[method](), known).SerializeToString())
    for _ in range(rng.choice([0, 0, 1, 3]) if encoded else 0):
        encoded[rng.randrange(len(encoded))] = rng.randrange(256)
    return method, bytes(encoded[: rng.randrange(len(encoded) + 1)] if rng.random() < 0.2 else encoded)


def fuzzed(plane: Plane, *, calls: int, seed: int) -> Counter[grpc.StatusCode]:
    """The statuses of so many calls, with every kind of token and credential, a false one, or none."""
    rng, found = random.Random(seed), Counter()
    with plane.channel() as channel:
        host = Host(AgentServiceStub(channel), f"fuzz-{seed}").known
        known = {"cluster_id": host.cluster_id, "host_id": host.host_id, "host_name": f"fuzz-{seed}", "boot_id": "b"}
        secrets = [TOKEN, TOKEN, host.credential, host.credential, plane.token("ingest", f"fuzz-{seed}"), "hwh_x"]
        every = [(), *((("authorization", f"Bearer {secret}"),) for secret in secrets)]
        for _ in range(calls):
            shown = rng.choice(every)
            method, message = mutated(rng, known)
            try:
                channel.unary_unary(method)(message, metadata=shown, timeout=1.0)
                found[grpc.StatusCode.OK] += 1
            except grpc.RpcError as error:
                found[error.code()] += 1
    return found
