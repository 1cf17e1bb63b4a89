"""What expressions of a module stand for, as far as the module itself says: texts and URLs. Nothing is run."""

import ast
from collections.abc import Iterator

_STEPS_MAX = 5  # from name to name; `a = a` has no end


class Values:
    """The names at the top of a module and of its classes, with what is assigned to each."""

    def __init__(self, tree: ast.Module) -> None:
        self._of = dict(_named(tree.body, prefix=""))

    def resolved(self, node: ast.expr | None) -> ast.expr | None:
        """``node``, or what the name that it is was last assigned."""
        for _ in range(_STEPS_MAX):
            name = _dotted(node)
            if name not in self._of:
                break
            node = self._of[name]
        return node

    def text(self, node: ast.expr | None) -> str | None:
        """The text that ``node`` is; ``None``: it is none, or one that only a run of the program shows."""
        match self.resolved(node):
            case ast.Constant(value=str(text)):
                return text
            case _:
                return None

    def texts(self, node: ast.expr | None) -> list[str] | None:
        """The texts of a list, a tuple or a set; ``None`` if it is none, or has anything else."""
        found = self.resolved(node)
        if not isinstance(found, ast.List | ast.Tuple | ast.Set):
            return None
        texts = [self.text(each) for each in found.elts]
        return [each for each in texts if each is not None] if None not in texts else None

    def url(self, node: ast.expr | None) -> tuple[str | None, str | None]:
        """The URL that ``node`` writes out, and the variable that goes before it: ``os.getenv("NAME", "URL")``."""
        match self.resolved(node):
            case ast.Constant(value=str(url)):
                return url, None
            case ast.Subscript(value=ast.Attribute(attr="environ"), slice=ast.Constant(value=str(name))):
                return None, name
            case ast.Call(
                func=ast.Attribute(attr="getenv") | ast.Attribute(value=ast.Attribute(attr="environ"), attr="get"),
                args=[ast.Constant(value=str(name)), *rest],
            ):
                return self.text(rest[0]) if rest else None, name
            case ast.BoolOp(op=ast.Or(), values=[first, second]):
                known, variable = self.url(first)
                return known or self.url(second)[0], variable
            case _:
                return None, None


def called_name(call: ast.Call) -> str:
    """The last word of what is called: ``Queue`` of ``rq.Queue(…)``."""
    return last_word(call.func)


def last_word(node: ast.expr) -> str:
    """``c`` of ``a.b.c``; empty where the expression has no name."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    """The value of that keyword of a call."""
    return next((each.value for each in call.keywords if each.arg == name), None)


def _named(body: list[ast.stmt], *, prefix: str) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        if isinstance(statement, ast.ClassDef) and not prefix:
            yield from _named(statement.body, prefix=f"{statement.name}.")
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        for target in targets:
            value = getattr(statement, "value", None)
            if isinstance(target, ast.Name) and isinstance(value, ast.expr):
                yield f"{prefix}{target.id}", value
                if prefix:  # a member of an Enum
                    yield f"{prefix}{target.id}.value", value


def _dotted(node: ast.expr | None) -> str:
    words = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(words)]) if isinstance(node, ast.Name) else ""
