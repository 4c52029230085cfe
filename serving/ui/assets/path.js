// The procedure as a row of lanterns: the present state is lit, those that may follow are outlined.

import { capital, fill, h, hidden, plain } from "./dom.js";

// The states of a trade as a customer knows them, in the order of a purchase.
const TRADE = {
  SHOW_ITEMS: "Look", OFFER_SELL: "Offer", NEGOTIATE: "Haggle", FINAL_CHECK: "Review",
  COMMIT_SALE: "Sale", CASUAL: "Small talk", END: "Farewell",
};
const LANTERN = `<svg viewBox="0 0 40 56" focusable="false"><path class="cord" d="M20 0v10"/>
<path class="cap" d="M11 18l5-8h8l5 8z"/><rect class="pane" x="10" y="18" width="20" height="26" rx="4"/>
<path class="flame" d="M20 24c5 6 5 9 5 11a5 5 0 0 1-10 0c0-2 1-5 5-11z"/><rect class="cap" x="8" y="44" width="24" height="6" rx="2"/></svg>`;

export const label = (state) => (state ? TRADE[state] ?? capital(plain(state)) : "Welcome");

// Before the first line there is no state: that is the welcome.
function ordered({ states, now }) {
  const start = states.includes(now) ? [] : [now];
  const known = Object.keys(TRADE).filter((state) => states.includes(state));
  return [...start, ...known, ...states.filter((state) => !known.includes(state))];
}

function standing(state, { now, legal }, been) {
  if (state === now) return ["now", ", now"];
  if (legal.includes(state)) return [been.has(state) ? "next been" : "next", ", may come next"];
  return [been.has(state) ? "shut been" : "shut", ", cannot come next"];
}

export function showPath(list, procedure, been) {
  fill(list, ordered(procedure).map((state) => lantern(state, procedure, been)));
}

function lantern(state, procedure, been) {
  const [look, words] = standing(state, procedure, been);
  const picture = h("span", { class: "lantern", "aria-hidden": "true" });
  picture.innerHTML = LANTERN;
  return h(
    "li", { class: look, "data-state": state, title: state, "aria-current": state === procedure.now ? "step" : null },
    picture, h("span", { class: "label" }, label(state)), hidden(words),
  );
}
