// The question for a token.

import { $, say } from "./dom.js";
import { signIn } from "./session.js";
import { reasonOf, TokenNeeded } from "./stream.js";

let asked = null; // one question, however many requests need its answer

/** Ask; resolves once somebody has signed in. */
export function askForToken() {
  asked ??= new Promise((done) => {
    $("ask").showModal();
    $("ask-form").onsubmit = (event) => {
      event.preventDefault();
      entered().then((isIn) => {
        if (!isIn) return;
        asked = null;
        $("give").hidden = true;
        $("ask").close();
        done();
      });
    };
  });
  return asked;
}

/** Whether the token that was entered is taken; if not, says why. */
async function entered() {
  const field = $("token");
  const token = field.value.trim();
  field.value = "";
  say($("ask-problem"), "");
  try {
    await signIn(token);
    return true;
  } catch (error) {
    say($("ask-problem"), error instanceof TokenNeeded ? "The token was not accepted: it is mistyped, over its time or revoked." : `Not signed in: ${reasonOf(error)}`);
    field.focus();
    return false;
  }
}

// Escape closes what is open; a page without a token keeps a button to give one.
$("ask").addEventListener("cancel", () => ($("give").hidden = false));
$("give").addEventListener("click", () => {
  $("give").hidden = true;
  $("ask").showModal();
});
