"""How good the figures of a library are, as lines."""

from collections.abc import Iterator

from headway.collect.source import Figure, Library


def accuracy_lines(library: Library) -> Iterator[str]:
    """Which figures are exact, bounded and unseen, and the change that makes one better."""
    each = {figure: library.of(figure) for figure in Figure}
    exact = [figure for figure, accuracy in each.items() if accuracy.is_seen and not accuracy.bound]
    if exact:
        yield f"  exact: {', '.join(exact)}"
    for figure, accuracy in each.items():
        better = f"; {accuracy.remedy}" if accuracy.remedy else ""
        if not accuracy.is_seen:
            yield f"  not shown by the broker: {figure}{better}"
        elif accuracy.bound:
            yield f"  bounded: {figure}, to {accuracy.bound}{better}"
