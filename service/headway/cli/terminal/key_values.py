"""``KIND:key=value,…``, as workloads and faults of a rehearsal are written on a command line."""


def described(text: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The kind, and each key with its value, in the order given. A key without ``=`` has an empty value."""
    kind, _, rest = text.partition(":")
    pairs = (pair.partition("=") for pair in rest.split(",") if pair)
    return kind, tuple((key.strip(), value.strip()) for key, _, value in pairs)
