// What is known now: the newest overview, when it was true, and whether newer ones come.

import { changed } from "./changes.js";
import { learn } from "./states.js";

export class Store {
  /** The newest overview; null until the first. */
  overview = null;
  /** Whether it is of now: false when the connection is lost, or nothing has come for long. */
  isLive = false;
  /** Why there is no newer overview; null as long as one is waited for. */
  #why = null;
  #number = null; // of the newest overview, by which a change names what it changes
  #skew_s = 0; // the server's clock less this browser's
  #listeners = new Set();

  /** Take what the stream sent: an overview, or a change of the newest one. A change of another one ends in an error. */
  take(name, data, number) {
    if (name === "change" && data.since !== this.#number) throw new Error("an update was missed");
    const overview = name === "change" ? changed(this.overview, data) : data;
    this.#number = number;
    this.overview = overview;
    learn(overview);
    this.#skew_s = overview.at_s - Date.now() / 1000;
    this.isLive = true;
    this.#changed();
  }

  /** From now on, what is known grows old. */
  isStaleNow(why = null) {
    this.isLive = false;
    this.#why = why;
    this.#changed();
  }

  /**
   * The moment that is shown, in the server's seconds. Without a connection nothing ages on as if it were known to: it is
   * that of the last overview.
   */
  get moment_s() {
    return this.isLive || !this.overview ? Date.now() / 1000 + this.#skew_s : this.overview.at_s;
  }

  /** Whether the overview that is waited for could not be had. */
  get hasFailed() {
    return this.#why !== null;
  }

  /** What is said where there is no overview yet. */
  get awaited() {
    return !this.hasFailed ? "Waiting for the first overview…" : `Not known yet: ${this.#why}`;
  }

  /** When the last overview was made, in this browser's seconds. */
  get asOf_s() {
    return this.overview.at_s - this.#skew_s;
  }

  /** Call `listener` after each change; what comes back ends that. */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The pool of this name; undefined where the overview has none. */
  pool(name) {
    return this.overview?.pools.find((each) => each.pool === name);
  }

  #changed() {
    for (const listener of this.#listeners) listener(this);
  }
}
