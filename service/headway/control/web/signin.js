// The question for a token.

import { $, say } from "./dom.js";
import { hasToken, keepToken } from "./stream.js";

/** Ask; resolves once somebody has given one. */
export function askForToken() {
  const dialog = $("ask");
  if (hasToken()) say($("ask-why"), "The token was not accepted: it is mistyped, over its time or revoked. `headway token create --role viewer --name NAME` makes another.");
  dialog.showModal();
  return new Promise((done) => {
    $("ask-form").addEventListener(
      "submit",
      () => {
        $("give").hidden = true;
        keepToken($("token").value.trim());
        $("token").value = "";
        done();
      },
      { once: true },
    );
  });
}

// Escape closes what is open; a page without a token keeps a button to give one.
$("ask").addEventListener("cancel", () => ($("give").hidden = false));
$("give").addEventListener("click", () => {
  $("give").hidden = true;
  $("ask").showModal();
});
