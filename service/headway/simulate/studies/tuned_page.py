"""The page of a tuning: what is suggested for each pool, and what speaks for it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

from headway.simulate.report.fleet import totals
from headway.simulate.report.page import cells, cells_html, document
from headway.simulate.report.past import FOOT, POOLS_SHOWN, pool_section, skipped_section, totals_table
from headway.simulate.report.rows import Row
from headway.simulate.studies.tuning import Suggestion, Verdict

WORDS = {Verdict.CHANGE: "change", Verdict.KEEP: "keep what you have", Verdict.UNKNOWN: "not known"}
BEFORE_AFTER = ("in time", "p95", "worker-hours", "spawns")
_CELLS = (0, 2, 4, 6)  # of a rehearsal's


def tuned_page(
    suggestions: Sequence[Suggestion], skipped: Mapping[str, str], *, title: str, facts: Mapping[str, str]
) -> str:
    """The whole report as HTML; pools with a change come first."""
    ordered = sorted(suggestions, key=lambda each: (each.verdict is not Verdict.CHANGE, each.pool))
    shown = [each for each in ordered if each.trained][:POOLS_SHOWN]
    sections = [_overview(ordered), skipped_section(skipped), *map(_pool, shown)]
    return document(
        title,
        facts,
        "".join(sections),
        foot=f"{FOOT} What is suggested was chosen on the earlier part of "
        "the time and is shown on the later part, which it was not chosen on.",
    )


def before_and_after(suggestions: Sequence[Suggestion]) -> dict[str, list[Row]]:
    """Of each pool whose later part was rehearsed: as it is, and as suggested (the same, where that is to keep)."""
    found = {}
    for each in suggestions:
        if each.before is not None:
            after = each.after if each.verdict is Verdict.CHANGE and each.after is not None else each.before
            found[each.pool] = [replace(each.before, strategy="as it is"), replace(after, strategy="as suggested")]
    return found


def _overview(suggestions: Sequence[Suggestion]) -> str:
    found = totals(before_and_after(suggestions))
    table = totals_table(found) if found else ""
    head = "".join(f'<th scope="col">{name}</th>' for name in ("", "change", *BEFORE_AFTER))
    body = "".join(_line(each) for each in suggestions)
    return (
        f'<section><h2>All pools together, later part</h2>{table}<h2>Pool by pool</h2><div class="wide"><table><thead>'
        f'<tr><th scope="col">pool</th>{head}</tr></thead><tbody>{body}</tbody></table></div></section>'
    )


def _line(each: Suggestion) -> str:
    cells = cells_html((WORDS[each.verdict], change_of(each), *shown_cells(each)))
    return f'<tr title="{escape(each.why)}"><th scope="row">{escape(each.pool)}</th>{cells}</tr>'


def change_of(each: Suggestion) -> str:
    """The candidate's name where it is suggested, else a dash."""
    return each.candidate.name if each.verdict is Verdict.CHANGE else "–"


def shown_cells(each: Suggestion) -> tuple[str, ...]:
    """The later part's figures, before and after where something is to change."""
    if each.before is None:
        return ("–",) * len(BEFORE_AFTER)
    before = [cells(each.before)[index] for index in _CELLS]
    if each.verdict is not Verdict.CHANGE or each.after is None:
        return tuple(before)
    after = [cells(each.after)[index] for index in _CELLS]
    return tuple(f"{old} → {new}" for old, new in zip(before, after, strict=True))


def _pool(each: Suggestion) -> str:
    later = [row for row in (each.before, each.after) if row is not None]
    change = f" to {each.candidate.name}" if each.verdict is Verdict.CHANGE else ""
    note = f"<p><b>{escape(WORDS[each.verdict])}</b>{escape(change)}: {escape(each.why)}.</p>"
    section = pool_section(
        each.pool, each.trained, named=frozenset(row.strategy for row in later) | {each.trained[0].strategy}, note=note
    )
    if not later:
        return section
    return section + pool_section(f"{each.pool}, later part", later, named=frozenset(row.strategy for row in later))
