"""Queues that a file of source names, by libraries: routes, declarations and calls, as literals. Nothing is run."""

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from headway.cli.setup.source.source_files import SourceFile
from headway.cli.setup.source.source_values import Values, called_name, keyword, last_word
from headway.errors import Misconfigured

_SETTINGS: Mapping[str, str] = {
    **dict.fromkeys(("task_routes", "CELERY_TASK_ROUTES", "CELERY_ROUTES"), "routes"),
    **dict.fromkeys(("task_queues", "CELERY_TASK_QUEUES", "CELERY_QUEUES"), "queues"),
    **dict.fromkeys(("task_default_queue", "CELERY_TASK_DEFAULT_QUEUE", "CELERY_DEFAULT_QUEUE"), "default"),
    **dict.fromkeys(("beat_schedule", "CELERY_BEAT_SCHEDULE", "CELERYBEAT_SCHEDULE"), "schedule"),
    **dict.fromkeys(("broker_url", "CELERY_BROKER_URL", "BROKER_URL"), "broker"),
    "RQ_QUEUES": "rq",
}
_MARK = re.compile(
    rb"(?i:task_routes|task_queues|task_default_queue|default_queue|celery_routes|celery_queues|rq_queues|broker_url)|"
    rb"beat_?schedule|BEAT_?SCHEDULE|shared_task|\.task\b|\.apply_async|send_task|\.delay\(|\bset\(\s*queue|config_from_|"
    rb"\brq\b|django_rq|dramatiq"
)
_TASK_WORDS = frozenset({"task", "shared_task", "periodic_task"})
_SENDERS = frozenset({"apply_async", "send_task", "set", "signature", "subtask"})
_OTHER_TASKS = frozenset({"airflow", "fabric", "huey", "invoke", "locust", "prefect", "procrastinate", "taskiq"})
"""Libraries with a decorator that is called like Celery's."""
RQ_DEFAULT_QUEUE = DRAMATIQ_DEFAULT_QUEUE = "default"


@dataclass(slots=True, kw_only=True)
class FileQueues:
    """What one file says of queues and brokers."""

    file: SourceFile
    celery: list[str] = field(default_factory=list)
    rq: list[str] = field(default_factory=list)
    dramatiq: list[str] = field(default_factory=list)
    default: str | None = None
    """Where Celery sends tasks that no route names, if the file says so."""
    patterns: list[str] = field(default_factory=list)
    """Names of tasks that have a route."""
    tasks: list[str] = field(default_factory=list)
    """Names of Celery's tasks that are defined without a queue."""
    sent: set[str] = field(default_factory=set)
    """Functions whose tasks are sent with a queue."""
    sent_without: set[str] = field(default_factory=set)
    """Functions whose tasks are sent without one."""
    broker: tuple[str | None, str | None] = (None, None)
    """Of Celery's settings: the URL that is written out, and the variable that goes before it."""
    rq_brokers: list[tuple[str | None, str | None]] = field(default_factory=list)
    configurations: list[tuple[int, str | None]] = field(default_factory=list)
    """The line of each configuration of Celery that is another module, and its name, if that is a literal."""
    unread_lines: list[int] = field(default_factory=list)
    """Where names of Celery's queues are made by code."""
    unread_rq_lines: list[int] = field(default_factory=list)
    """The same, of RQ's."""
    imports: set[str] = field(default_factory=set)


def queues_in(file: SourceFile) -> FileQueues | None:
    """What the file says; ``None``: nothing.

    Raises:
        Misconfigured: it may say something, and cannot be read.
    """
    if _MARK.search(file.source) is None:
        return None
    tree = file.tree()
    if tree is None:
        raise Misconfigured(
            f"{file.path} was not read: it is no text of Python {sys.version_info[0]}.{sys.version_info[1]}"
        )
    reader = _Reader(file, Values(tree))
    try:
        reader.visit(tree)
    except RecursionError as error:
        raise Misconfigured(f"{file.path} was not read: it is nested too deeply") from error
    return reader.found


class _Reader(ast.NodeVisitor):
    """Reads one file."""

    def __init__(self, file: SourceFile, values: Values) -> None:
        self.found = FileQueues(file=file)
        self._values = values
        self._from: dict[str, str] = {}
        """Name here -> the package that it was imported from."""

    def visit_Import(self, node: ast.Import) -> None:
        for each in node.names:
            self.found.imports.add(each.name)
            self._from[each.asname or each.name.partition(".")[0]] = each.name.partition(".")[0]

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.found.imports.add(node.module or "")
        for each in node.names:
            self._from[each.asname or each.name] = (node.module or "").partition(".")[0]

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._assigned(target, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assigned(node.target, node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._setting(_setting_name(node.target), node.value)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                self._setting(key.value, value)
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for each in node.decorator_list:
            call = each if isinstance(each, ast.Call) else None
            word = last_word(call.func if call else each)
            if word in _TASK_WORDS and self._is_of_celery() and (call is None or keyword(call, "queue") is None):
                named = self._values.text(keyword(call, "name")) if call else None
                self.found.tasks.append(named or f"{self.found.file.module}.{node.name}")
            elif word == "actor" and call is None and "dramatiq" in self._from.values():
                self.found.dramatiq.append(DRAMATIQ_DEFAULT_QUEUE)
        self.generic_visit(node)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815

    def visit_Call(self, node: ast.Call) -> None:
        word = called_name(node)
        for each in node.keywords:
            if each.arg is not None:
                self._setting(each.arg, each.value)
        if word in _TASK_WORDS and self._is_of_celery():
            self._celery_queue(keyword(node, "queue"))
        elif word in _SENDERS or word == "delay":
            self._sent(node, word)
        elif word == "update" and isinstance(node.func, ast.Attribute) and node.args:
            self._setting(_setting_name(node.func.value), node.args[0])
        elif word in {"config_from_object", "config_from_envvar"}:
            self._configured(node, word)
        elif word == "actor" and "dramatiq" in self._from.values():
            queue = keyword(node, "queue_name")
            name = self._values.text(queue) if queue is not None else DRAMATIQ_DEFAULT_QUEUE
            self.found.dramatiq += [] if name is None else [name]
        elif self._package(node) in {"rq", "django_rq"}:
            self._rq(node, word)
        elif word in {"from_url", "Redis", "StrictRedis"} and {"rq", "django_rq"} & {*self._from.values()}:
            self.found.rq_brokers += [self._values.url(node.args[0])] if word == "from_url" and node.args else []
            self.found.rq_brokers += _redis(node, self._values) if word != "from_url" else []
        self.generic_visit(node)

    def _package(self, call: ast.Call) -> str:
        """The package that the function was imported from."""
        node = call.func
        while isinstance(node, ast.Attribute):
            node = node.value
        return self._from.get(node.id, "") if isinstance(node, ast.Name) else ""

    def _is_of_celery(self) -> bool:
        return _OTHER_TASKS.isdisjoint(self._from.values())

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Subscript) and _SETTINGS.get(_setting_name(target.value)) == "routes":
            self._route(self._values.text(target.slice), value)
        else:
            self._setting(_setting_name(target), value)

    def _setting(self, name: str, value: ast.expr) -> None:
        match _SETTINGS.get(name):
            case "routes":
                self._routes(value)
            case "queues":
                self._queues(value)
            case "default":
                text = self._values.text(value)
                if text is None:
                    self._unread(value)
                else:
                    self.found.default = text
            case "schedule":
                self._schedule(value)
            case "broker":
                broker = self._values.url(value)
                self.found.broker = broker if any(broker) else self.found.broker
            case "rq":
                self.found.rq += [name for name, _ in self._items(value) if name is not None]

    def _items(self, value: ast.expr | None) -> Iterator[tuple[str | None, ast.expr]]:
        """The entries of a literal dictionary, each with its key, where that is a text."""
        match self._values.resolved(value):
            case ast.Dict(keys=keys, values=values):
                for key, each in zip(keys, values, strict=True):
                    if key is None:  # **others
                        yield from self._items(each)
                    else:
                        yield self._values.text(key), each
            case ast.Call(func=ast.Name(id="dict"), args=[], keywords=keywords):
                for given in keywords:
                    yield given.arg, given.value

    def _is_dictionary(self, value: ast.expr | None) -> bool:
        match self._values.resolved(value):
            case ast.Dict() | ast.Call(func=ast.Name(id="dict"), args=[]):
                return True
            case _:
                return False

    def _routes(self, value: ast.expr) -> None:
        found = self._values.resolved(value)
        if self._is_dictionary(found):
            for pattern, route in self._items(found):
                self._route(pattern, route)
        elif isinstance(found, ast.List | ast.Tuple):
            match found.elts:
                case [first, second] if (pattern := self._values.text(first)) is not None:
                    self._route(pattern, second)
                case _:
                    for each in found.elts:
                        self._routes(each)
        elif not isinstance(found, ast.Constant) or found.value is not None:
            self._unread(value)

    def _route(self, pattern: str | None, route: ast.expr) -> None:
        if self._is_dictionary(route):
            queue = next((each for key, each in self._items(route) if key == "queue"), None)
            if queue is None:
                return  # to an exchange, or with a priority only
        else:
            queue = route
        self.found.patterns += [pattern] if pattern else []
        self._celery_queue(queue)

    def _queues(self, value: ast.expr) -> None:
        found = self._values.resolved(value)
        if self._is_dictionary(found):
            self.found.celery += [name for name, _ in self._items(found) if name is not None]
        elif isinstance(found, ast.List | ast.Tuple | ast.Set):
            for each in found.elts:
                self._celery_queue(each)
        elif isinstance(found, ast.ListComp | ast.SetComp | ast.GeneratorExp):
            names = self._values.texts(found.generators[0].iter)
            if names is None:
                self._unread(value)
            self.found.celery += names or []
        elif isinstance(found, ast.Call) and called_name(found) in {"tuple", "list", "set"} and found.args:
            self._queues(found.args[0])
        elif not isinstance(found, ast.Constant) or found.value is not None:
            self._unread(value)

    def _celery_queue(self, value: ast.expr | None) -> None:
        """Note a queue that is a name, or a call of Kombu's ``Queue``."""
        found = self._values.resolved(value)
        if isinstance(found, ast.Call) and called_name(found) == "Broadcast":
            return  # each worker has one of its own
        if isinstance(found, ast.Call) and called_name(found) == "Queue":
            found = found.args[0] if found.args else keyword(found, "name")
        name = self._values.text(found)
        if name is not None:
            self.found.celery.append(name)
        elif value is not None and not (isinstance(found, ast.Constant) and found.value is None):
            self._unread(value)

    def _schedule(self, value: ast.expr) -> None:
        for _, entry in self._items(value):
            for key, options in self._items(entry):
                if key == "options":
                    for name, queue in self._items(options):
                        self._celery_queue(queue if name == "queue" else None)

    def _sent(self, call: ast.Call, word: str) -> None:
        queue = keyword(call, "queue")
        if queue is not None:
            self._celery_queue(queue)
        task = self._values.text(call.args[0]) if word == "send_task" and call.args else _task_of(call)
        if task:
            name = task.rpartition(".")[2]
            if queue is not None:
                self.found.sent.add(name)
            elif word in {"delay", "apply_async", "send_task"}:
                self.found.sent_without.add(name)

    def _configured(self, call: ast.Call, word: str) -> None:
        if word == "config_from_envvar":
            self.found.configurations.append((call.lineno, None))
        if word == "config_from_envvar" or not call.args:
            return
        named = self._values.text(call.args[0])
        if named is None:
            name = last_word(call.args[0])
            tree = self.found.file.tree()
            classes = {each.name for each in tree.body if isinstance(each, ast.ClassDef)} if tree else set()
            is_here = self._values.resolved(call.args[0]) is not call.args[0] or name in classes
            if is_here:
                return
            named = name or None
        self.found.configurations.append((call.lineno, named))

    def _rq(self, call: ast.Call, word: str) -> None:
        if word in {"Queue", "get_queue", "job"}:
            named = call.args[0] if call.args else keyword(call, "queue" if word == "job" else "name")
            if named is None:
                self.found.rq.append(RQ_DEFAULT_QUEUE)
            elif (name := self._values.text(named)) is not None:
                self.found.rq.append(name)
            elif not self._is_rq_queue(named, is_imported_too=word == "job"):
                self.found.unread_rq_lines.append(call.lineno)
        elif word in {"Worker", "SimpleWorker", "get_worker"}:
            for each in call.args:
                self.found.rq += self._values.texts(each) or []

    def _is_rq_queue(self, value: ast.expr, *, is_imported_too: bool) -> bool:
        """Whether ``value`` is a ``Queue`` whose own call names it, here or in the file that it comes from."""
        found = self._values.resolved(value)
        is_imported = isinstance(found, ast.Name) and found.id in self._from
        return (isinstance(found, ast.Call) and called_name(found) in {"Queue", "get_queue"}) or (
            is_imported_too and is_imported
        )

    def _unread(self, value: ast.expr) -> None:
        self.found.unread_lines.append(value.lineno)


def _setting_name(node: ast.expr) -> str:
    """The setting that ``conf.name`` and ``conf["name"]`` are; empty where the expression is neither."""
    match node:
        case ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
        case _:
            return last_word(node)


def _task_of(call: ast.Call) -> str:
    """The function whose task is sent: ``mail`` of ``mail.delay(1)`` and of ``mail.s(1).apply_async()``."""
    node: ast.expr = call.func
    while isinstance(node, ast.Attribute | ast.Call):
        if isinstance(node, ast.Call):
            node = node.func
        elif node.attr in {*_SENDERS, "delay", "s", "si"}:
            node = node.value
        else:
            return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _redis(call: ast.Call, values: Values) -> Sequence[tuple[str | None, str | None]]:
    """The URL of ``Redis(host="h", port=6379, db=1)``, where it has no other words and no password."""
    given = {each.arg: values.resolved(each.value) for each in call.keywords}
    parts = {
        name: each.value
        for name, each in given.items()
        if isinstance(each, ast.Constant) and isinstance(each.value, str | int)
    }
    if call.args or parts.keys() != given.keys() or "password" in parts or "username" in parts:
        return []
    host, port, db = (parts.get(name, usual) for name, usual in (("host", "localhost"), ("port", 6379), ("db", 0)))
    return [(f"redis://{host}:{port}/{db}", None)]
