// Finding in a long list: a filter by name that a link can hold, and an order that waits while somebody is at the rows.

import { parameter as parameterOf, setParameters } from "./address.js";
import { say } from "./dom.js";

export const FEW = 5; // seen at a glance: nobody searches among them
const HELD_MS = 10_000; // without a move for longer, the pointer was only left there

/** Names as people order them: worker-2 before worker-10. */
export const byName = new Intl.Collator("en", { numeric: true }).compare;

/**
 * The filter inside `place`, for the children of `rows`. `parameter` is its name in the page's address; `changed()` is
 * called when somebody has typed.
 */
export class Finder {
  #place;
  #input;
  #parameter;
  #places = new Map(); // key -> where it was shown last
  #touchedAt = -Infinity;

  constructor({ place, rows, parameter, changed }) {
    this.#place = place;
    this.#input = place.querySelector("input");
    this.#parameter = parameter;
    this.#input.value = parameterOf(parameter) ?? "";
    this.#input.addEventListener("input", () => {
      this.#keepInAddress();
      this.release();
      changed();
    });
    this.#input.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || !this.#input.value) return;
      event.preventDefault();
      this.#input.value = "";
      this.#input.dispatchEvent(new Event("input"));
    });
    for (const kind of ["pointermove", "pointerdown", "keydown"]) {
      rows.addEventListener(kind, () => (this.#touchedAt = performance.now()));
    }
    rows.addEventListener("pointerleave", () => this.release());
  }

  /** The search text, in lower case; empty for everything. */
  get wanted() {
    return this.#input.value.trim().toLowerCase();
  }

  /** Go to the filter, if it is offered. */
  focus() {
    if (this.#place.hidden) return false;
    this.#input.focus();
    this.#input.select();
    return true;
  }

  /** Order anew at once. */
  release() {
    this.#touchedAt = -Infinity;
  }

  /** Show the filter and the line `tally` above it where there are more than a few. */
  offer(total, tally) {
    this.#place.hidden = total <= FEW && !this.wanted && document.activeElement !== this.#input;
    say(this.#place.querySelector("[data-part=tally]"), tally);
  }

  /** The items one of whose names contains the search text. Shows how many. */
  found(items, namesOf) {
    const wanted = this.wanted;
    const found = wanted ? items.filter((item) => namesOf(item).some((name) => name.toLowerCase().includes(wanted))) : items;
    say(this.#place.querySelector("[data-part=found]"), wanted ? `${found.length} found` : "");
    return found;
  }

  /** The items in order; in the order of last time while the pointer or a key has just been at them. */
  ordered(items, key, compare) {
    const ordered = [...items].sort(compare);
    if (performance.now() - this.#touchedAt < HELD_MS) {
      const place = (item) => this.#places.get(key(item)) ?? this.#places.size;
      ordered.sort((one, other) => place(one) - place(other));
    }
    this.#places = new Map(ordered.map((item, index) => [key(item), index]));
    return ordered;
  }

  #keepInAddress() {
    setParameters({ [this.#parameter]: this.#input.value.trim() });
  }
}
