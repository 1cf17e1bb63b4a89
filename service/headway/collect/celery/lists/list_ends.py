"""Both ends of a list of Celery's in Redis, as one trip found them."""

from dataclasses import dataclass, field

from headway.collect.celery.celery_message import Message, message_from
from headway.collect.celery.lists.list_contents import Standing, standing


@dataclass(slots=True)
class ListEnds:
    """Both ends of a list, and which of its marks are there."""

    newest: list[str]
    """The text of its newest message; empty where the list is."""
    head: list[str]
    """Those of the messages that are taken next, the first of them last."""
    present: list[bool]
    length: int
    next_messages: list[Message] = field(init=False)
    """Those of ``head``, the first of them first."""

    def __post_init__(self) -> None:
        self.next_messages = [message_from(text) for text in reversed(self.head)]

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands there, or it was emptied amid the trip."""
        return not self.newest or not self.head

    def next_standing(self) -> list[Standing]:
        """What is known of ``next_messages``."""
        return [standing(each, text) for each, text in zip(self.next_messages, reversed(self.head), strict=True)]
