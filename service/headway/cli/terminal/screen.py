"""What a terminal is drawn on: a text is one line, whatever it names, and nothing in it is markup or moves the cursor.

Names come from outside. So no command makes a console or a text of Rich's own.
"""

from collections.abc import Iterable
from textwrap import wrap
from typing import Any

import rich.text
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from headway.errors import printable

SCREEN_PIPED_WIDTH = 200  # where no terminal says how wide it is


class Text(rich.text.Text):
    """A text in one line."""

    def __init__(self, text: str = "", style: Any = "", **options: Any) -> None:
        super().__init__(printable(text), style, **options)

    def append(self, text: Any, style: Any = None) -> "Text":
        """More of the same line."""
        super().append(printable(text) if isinstance(text, str) else text, style)
        return self


def lined(*texts: str, style: str = "") -> Text:
    """A text of several lines."""
    shown = Text(style=style)
    rich.text.Text.append(shown, "\n".join(map(printable, texts)))
    return shown


def paragraph(text: str, columns: int, *, style: str = "") -> Text:
    """``text`` in lines of so many columns at most."""
    return lined(*wrap(printable(text), columns, break_long_words=False), style=style)


class Screen(Console):
    """A console for texts as they are: no markup, and what is no text of ours is made printable, too."""

    def __init__(self, *, stderr: bool = False, width: int | None = None, **options: Any) -> None:
        super().__init__(stderr=stderr, width=width, markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> rich.text.Text:
        """``text`` as it can be shown."""
        return super().render_str(printable(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is shown of ``renderable``; only the console itself moves the cursor."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment("\n".join(map(printable, text.split("\n"))), style)


def output() -> Screen:
    """Standard output; piped to a program or a file, it is wide enough for any table."""
    screen = Screen()
    return screen if screen.is_terminal else Screen(width=SCREEN_PIPED_WIDTH)


def errors() -> Screen:
    """Standard error."""
    return Screen(stderr=True)
