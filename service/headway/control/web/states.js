// The states of pools: their words, what each means and how urgent it is, as the control plane's table of conditions says.

const NO_PROFILE = { word: "no profile", meaning: "No profile names this queue: it is watched and has no workers of Headway.", severity: null };
let states = new Map();

/** Take the states that an overview lists, the most urgent first. */
export function learn(overview) {
  states = new Map([...(overview.states ?? []).map((each) => [each.state, each]), ["unmanaged", NO_PROFILE]]);
}

/** A state in a word or two. */
export const wordOf = (state) => states.get(state)?.word ?? state;

/** What is then so. */
export const meaningOf = (state) => states.get(state)?.meaning ?? "";

/** The states of these severities, the most urgent first. */
export const statesOf = (...severities) => [...states.values()].filter((each) => severities.includes(each.severity)).map((each) => each.state);

/** A greater number for a more urgent state; 0 for what is in order, or so for moments. */
export const urgencyOf = (state) => states.get(state)?.urgency ?? 0;

/** The words after the number of pools that are in a state, or in one that is counted with it; empty: none are. */
export const countedAs = (state) => states.get(state)?.counted_as ?? "";

/** Each of these words, those of the most urgent states first. */
export const counts = () => [...new Set([...states.keys()].map(countedAs).filter(Boolean))];
