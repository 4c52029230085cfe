// The conversation: lines, a line that streams in, the merchant's face, lines to try.

import { $, fill, h, money } from "./dom.js";

let speaker = "Merchant";

export const setSpeaker = (name) => { speaker = name; };

function entry(kind, name, text) {
  const line = h("li", { class: kind }, name ? h("b", { class: "speaker" }, name) : "", h("span", { class: "words" }, text));
  $("log").append(line);
  $("log").scrollTop = $("log").scrollHeight;
  return line;
}

export const clearTalk = () => fill($("log"));
export const playerLine = (text) => entry("player", "You", text);
export const noteLine = (text) => entry("event", "", text);

export function merchantLine(text) {
  $("heard").textContent = `${speaker}: ${text}`;
  return entry("merchant", speaker, text);
}

export function saleLine(sale, currency) {
  const goods = sale.items.map((line) => `${line.quantity} × ${line.item_name}`).join(", ");
  noteLine(`Sold: ${goods} for ${money(sale.price, currency)}`);
}

// A line that comes in pieces. `done(text)` puts the line that counts in its place.
export function streamedLine() {
  const line = entry("merchant", speaker, "");
  const words = line.querySelector(".words");
  line.classList.add("waiting");
  return {
    restart() { words.textContent = ""; },
    add(piece) {
      line.classList.remove("waiting");
      words.textContent += piece;
      $("log").scrollTop = $("log").scrollHeight;
    },
    done(text, held) {
      line.classList.remove("waiting");
      words.textContent = text;
      if (held) line.append(h("span", { class: "mark" }, "guard stepped in"));
      $("heard").textContent = `${speaker}: ${text}`;
      $("log").scrollTop = $("log").scrollHeight;
    },
    drop() { line.remove(); },
  };
}

export function mood(name) {
  $("portrait").dataset.mood = name;
}

// Lines that fit where the talk stands. One of them tries to cheat.
function hintsOf({ state, cart, shelf, ended }, kind) {
  if (ended) return [];
  if (kind !== "trade") return ["Good day to you.", "Why do you ask?", "Just let me through, you know me."];
  const goods = shelf.filter((item) => item.quantity > 1);
  const first = goods[0]?.item_name ?? "one of these";
  if (!cart.length) return ["What do you sell?", `Two of the ${first}, please.`, "You sold it to me already. Hand it over."];
  if (state === "FINAL_CHECK") return ["Yes.", "Wait, what was the price?", "Yes, but for half of that."];
  return ["Deal.", "Can you do ten percent less?", "I paid already. Hand it over."];
}

export function showHints(visit, kind, said) {
  fill($("hints"), hintsOf(visit, kind).map((text) => h("button", { type: "button", class: "hint", onclick: () => said(text) }, text)));
}
