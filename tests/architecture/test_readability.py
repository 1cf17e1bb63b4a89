"""Pages and `--help` read at normal speed: a median of 16 words a sentence, 30 at the 90th percentile, or fewer."""

import pytest

from readability import Figures, Sentence, figures, longest, of_help, of_markdown, of_pages, pages
from support.tree import ROOT

# Pages have 15 and 29 today, help 8 and 14. A figure above these bounds is never met by raising them.
WORDS_MAX = Figures(median_words=16, p90_words=30, sentences=0)


@pytest.mark.parametrize("sentences", [of_pages, of_help], ids=["the pages", "--help"])
def test_sentences_are_short(sentences) -> None:
    found = figures(sentences())
    is_short = found.median_words <= WORDS_MAX.median_words and found.p90_words <= WORDS_MAX.p90_words
    assert is_short, f"{found}, more than {WORDS_MAX}; shorten some of these:\n{longest(sentences(), 20)}"


def _words(page: str) -> list[int]:
    return [sentence.words for sentence in of_markdown(page, "page.md")]


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("One two three. Four five.", [3, 2]),
        ("A line\nthat goes on.\n\nAnother one.", [5, 2]),
        ("Write `headway get hosts --all` first.", [3]),  # a code span is a word
        ("See [the page on hosts](hosts.md). Then act.", [5, 2]),
        ("# A heading\n\n```bash\nmake all. Now.\n```\n\n| a cell. | Two words. |\n\nIt is so.", [3]),
        ("- One item is a sentence.\n- a fragment", [5]),
        ("See e.g. the page of `host.toml`. It has 3.5 lines.", [6, 4]),
        ("<!-- A comment is not read. -->\nA page is.", [3]),
    ],
)
def test_a_sentence_is_counted(page: str, words: list[int]) -> None:
    assert _words(page) == words


def test_the_longest_sentences_come_first_with_their_lines() -> None:
    sentences = list(of_markdown("Short one.\n\nThis one is longer than that.", "page.md"))
    assert longest(sentences, 1) == "   6 words  page.md:3  This one is longer than that."


def test_every_page_counts_but_records_and_the_changelog() -> None:
    names = {str(page.relative_to(ROOT)) for page in pages()}
    assert {"README.md", "CONTRIBUTING.md", "docs/README.md", "docs/how-to/install.md"} <= names
    assert "CHANGELOG.md" not in names


def test_help_is_found_in_typer_and_in_argparse() -> None:
    texts = {sentence.text for sentence in of_help()}
    assert "Jobs of a whole day, as in 250k or 1M." in texts  # an option of typer's
    assert any("agent of one host" in text for text in texts)  # a module's docstring, as argparse prints it
    assert all(isinstance(each, Sentence) for each in of_help())
