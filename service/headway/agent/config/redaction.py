"""Command lines as they may be shown: journals keep what the agent prints, and more people read them than host.toml."""

import re
from collections.abc import Iterable

MASK = "***"
_NAMES = r"pass(?:word|wd|phrase|code)?|pwd|secret|token|credential|auth|api[_-]?key|private[_-]?key|access[_-]?key"
USERINFO = re.compile(r"(?<=://)[^/\s@'\"]*(?:@[^/\s@'\"]*)*(?=@)")
"""Who a URL signs in as, and with which password."""
_ASSIGNED = re.compile(rf"(?i)((?:^|[^a-z])[\w.-]*(?:{_NAMES})[\w.-]*\s*[=:]\s*)('[^']*'|\"[^\"]*\"|[^\s&;,]+)")
_NAME = re.compile(rf"(?i)-{{1,2}}[\w.-]*(?:{_NAMES})[\w.-]*")


def shown(argv: Iterable[str]) -> str:
    """The words of a command, what looks like a password, a token or a URL's user masked."""
    words, is_value = [], False
    for word in argv:
        words.append(MASK if is_value else masked(word))
        is_value = not is_value and _NAME.fullmatch(word) is not None
    return " ".join(words)


def masked(text: str) -> str:
    """The text, what looks like a password, a token or a URL's user masked."""
    return _ASSIGNED.sub(rf"\g<1>{MASK}", USERINFO.sub(MASK, text))
