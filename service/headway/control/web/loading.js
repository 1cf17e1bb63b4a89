// What a page reads by itself: loading, shown, out of date and failed are four states, and each says which it is. What `hides` names is
// shown from the first answer on.

import { el, say } from "./dom.js";
import { ago } from "./format.js";
import { askForToken } from "./signin.js";
import { reasonOf, TokenNeeded } from "./stream.js";

/** Reads again and again while its page is open; `read()` gives what `show(value)` shows. */
export class Loading {
  #state = el("p", { class: "sub state-line", role: "status" }, "Loading…");
  #read;
  #show;
  #every_ms;
  #hides;
  #turn = 0;
  #timer = 0;
  #at = null;
  #isClosed = false;

  constructor(root, { read, show, every_ms = 0, hides = [] }) {
    root.append(this.#state);
    this.#hides = hides;
    for (const each of hides) each.hidden = true;
    this.#read = read;
    this.#show = show;
    this.#every_ms = every_ms;
    this.again();
  }

  /** Read now; an answer that is under way is not shown any more. */
  async again() {
    const turn = ++this.#turn;
    clearTimeout(this.#timer);
    if (this.#at === null) say(this.#state, "Loading…");
    try {
      const value = await this.#read();
      if (turn !== this.#turn || this.#isClosed) return;
      this.#at = Date.now();
      say(this.#state, "");
      for (const each of this.#hides.splice(0)) each.hidden = false;
      this.#show(value);
    } catch (error) {
      if (turn !== this.#turn || this.#isClosed) return;
      if (error instanceof TokenNeeded) return askForToken().then(() => this.again());
      say(this.#state, `${this.#at === null ? "Not known" : `Out of date: read ${ago((Date.now() - this.#at) / 1000)}`}: ${reasonOf(error)}`);
    }
    if (this.#every_ms && turn === this.#turn) this.#timer = setTimeout(() => this.again(), this.#every_ms);
  }

  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}

/** A page's heading and the line below it. */
export function heading(title, line = "") {
  return el("section", { class: "summary plain" }, el("h1", {}, title), el("p", { class: "sub", "data-part": "line" }, line));
}

/** A column of numbers, which stand to the right. */
export const number = (label) => ({ label, isNumber: true });

/** A table of `columns` (labels, or `number(label)`) with rows of cells (text or element); narrow screens show each cell's label. */
export function table(caption, labels, rows) {
  const columns = labels.map((label) => (typeof label === "string" ? { label } : label));
  const head = columns.map(({ label, isNumber }) => el("th", { scope: "col", class: isNumber && "number" }, label));
  const body = rows.map((cells) => el("tr", {}, ...cells.map((cell, index) => el(index ? "td" : "th", { scope: index ? null : "row", class: columns[index].isNumber && "number", "data-label": columns[index].label }, cell))));
  return el("table", { class: "plain-table" }, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body));
}

/** A table on a card. */
export const card = (caption, labels, rows) => el("div", { class: "card" }, table(caption, labels, rows));

/** A list of terms, each with what is so of it. */
export const facts = (entries) => el("dl", { class: "card facts" }, ...entries.flatMap(([term, value]) => [el("dt", {}, term), el("dd", {}, value)]));

/** What stands where there is nothing to show. */
export const nothing = (title, text) => el("div", { class: "empty" }, el("b", {}, title), el("p", {}, text));
