// Who is signed in. A token becomes a cookie that no script can read; what changes something carries the session's CSRF word.

import { request, TokenNeeded } from "./stream.js";

const JSON_TYPE = { "Content-Type": "application/json" };
const CHANGES = ["operator", "admin"];
const READS_AUDIT = ["auditor", "admin"];

/** Who asks: name, role, way, csrf, expires_s. */
export const account = async () => (await request("v1/account")).json();

/** Sign in. Raises `Refused`, or `TokenNeeded` where the token is not known. */
export async function signIn(token) {
  await request("v1/session", { method: "POST", headers: JSON_TYPE, body: JSON.stringify({ token }) });
}

/** End the session, here and on every control plane. */
export async function signOut() {
  await send("DELETE", "v1/session").catch((error) => {
    if (!(error instanceof TokenNeeded)) throw error; // it has ended already
  });
}

/** Change something: what comes back, null where nothing does. Raises `Refused`, or `TokenNeeded`. */
export async function send(method, path, body, headers = {}) {
  const { csrf } = await account(); // another tab may have signed in anew
  const response = await request(path, {
    method,
    headers: { ...headers, ...(csrf ? { "X-Headway-CSRF": csrf } : {}), ...(body === undefined ? {} : JSON_TYPE) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  return response.status === 204 ? null : response.json();
}

/** Why this account may not change anything; null where it may. */
export const readOnly = ({ role }) => (CHANGES.includes(role) ? null : `Your role is ${role}: a change takes the role operator.`);

export const NOBODY_KNOWN = "Who is signed in is not known yet, so nothing can be changed.";

/** Why whoever is signed in may not change anything; null where that may. */
export const whyReadOnly = () => account().then(readOnly, () => NOBODY_KNOWN);

export const mayAudit = ({ role }) => READS_AUDIT.includes(role);
