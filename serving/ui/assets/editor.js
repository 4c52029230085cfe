// The shop editor: a form over the shop's definition, import and export through the API.

import { api } from "./api.js";
import { $, fill, h } from "./dom.js";
import { icon } from "./icons.js";

const TYPES = { json: "application/json", yaml: "application/yaml", yml: "application/yaml", csv: "text/csv" };

let draft; // the definition as it is edited; everything the form does not show stays in it
let original; // the name it is served under
let visited; // what to do with a saved shop

export function openEditor(shop, onSaved) {
  draft = structuredClone(shop.definition);
  original = shop.name;
  visited = onSaved;
  render();
  $("editor").showModal();
}

function render() {
  fill(
    $("editor"),
    h("header", {}, h("h2", { id: "editor-title" }, "Shop editor"), h("button", { type: "button", class: "small", onclick: () => $("editor").close() }, "Close")),
    h("form", { id: "editor-form", onsubmit: save }, basics(), goods(), h("p", { id: "editor-problem", class: "problem", role: "alert", hidden: true }), footer()),
  );
}

// A labelled field that writes into `target[name]`.
function field(label, target, name, { long = false, number = false, list = false, required = false } = {}) {
  const value = list ? (target[name] ?? []).join("\n") : target[name] ?? "";
  const change = (event) => {
    const text = event.target.value;
    if (list) target[name] = text.split("\n").map((line) => line.trim()).filter(Boolean);
    else if (number) target[name] = text === "" ? null : Number(text);
    else target[name] = text;
  };
  const attributes = { oninput: change, required, ...(number ? { type: "number", min: "0", step: "any" } : {}) };
  const control = long || list ? h("textarea", { ...attributes, rows: "3" }, String(value)) : h("input", { ...attributes, value: String(value) });
  return h("label", { class: "field" }, label, control);
}

function basics() {
  draft.situation ??= {};
  return h(
    "fieldset", {}, h("legend", {}, "The shop"),
    h(
      "div", { class: "grid" },
      field("Name", draft, "name", { required: true }), field("Currency", draft, "currency", { required: true }),
      field("Merchant", draft.merchant, "name", { required: true }), field("Place", draft.situation, "location"),
      field("Time", draft.situation, "time"), confirmation(),
    ),
    field("Who the merchant is", draft.merchant, "persona", { long: true, required: true }),
    field("How the merchant speaks, one line each", draft.merchant, "samples", { list: true }),
    field("What happens as the talk begins", draft.situation, "background", { long: true }),
  );
}

function confirmation() {
  const choose = h(
    "select", { onchange: (event) => { draft.confirmation = event.target.value; } },
    h("option", { value: "spoken" }, "the player's own words"), h("option", { value: "explicit" }, "a click on Confirm alone"),
  );
  choose.value = draft.confirmation ?? "spoken";
  return h("label", { class: "field" }, "What closes a sale", choose);
}

function goods() {
  return h(
    "fieldset", {}, h("legend", {}, `Goods (${draft.items.length})`),
    h("p", { class: "quiet" }, "Goods without price and stock are known to the merchant, but not for sale."),
    h("ul", { class: "goods" }, draft.items.map(good)),
    h("button", { type: "button", onclick: addItem }, "Add an item"),
  );
}

function good(item) {
  const remove = () => {
    draft.items.splice(draft.items.indexOf(item), 1);
    render();
  };
  return h(
    "li", { "data-item": item.item_id },
    h(
      "div", { class: "good" }, icon(item.item_name, item.item_id),
      field("Item", item, "item_name", { required: true }), field("Price", item, "price", { number: true }), field("Stock", item, "quantity", { number: true }),
      h("button", { type: "button", class: "small", "aria-label": `Remove ${item.item_name}`, onclick: remove }, "Remove"),
    ),
    h(
      "details", {}, h("summary", {}, "Description and facts"),
      field("Id", item, "item_id", { required: true }), field("Description", item, "description", { long: true }),
      field("Facts, one a line", item, "facts", { list: true }),
    ),
  );
}

function addItem() {
  const ids = new Set(draft.items.map((item) => item.item_id));
  let number = draft.items.length + 1;
  while (ids.has(`item_${number}`)) number += 1;
  draft.items.push({ item_id: `item_${number}`, item_name: `New item ${number}`, price: 1, quantity: 1, description: "", facts: [] });
  render();
  const last = $("editor").querySelector(".goods li:last-child input");
  last.scrollIntoView({ block: "center" });
  last.select();
}

function footer() {
  const file = h("input", { type: "file", id: "import-file", class: "unseen", accept: ".json,.yaml,.yml,.csv", tabindex: "-1", onchange: (event) => attempt(() => imported(event.target.files[0])) });
  const exports = ["yaml", "json", "csv"].map((format) => h("button", { type: "button", class: "small", onclick: () => attempt(() => download(format)) }, format.toUpperCase()));
  return h(
    "footer", {},
    h("span", { class: "row", role: "group", "aria-label": "Export" }, "Export", exports),
    h("span", { class: "row" }, h("button", { type: "button", class: "small", onclick: () => file.click() }, "Import a file"), file),
    h("button", { class: "primary" }, "Save and visit"),
  );
}

async function attempt(action) {
  $("editor-problem").hidden = true;
  try {
    await action();
  } catch (error) {
    $("editor-problem").textContent = error.told ?? error.message;
    $("editor-problem").hidden = false;
    $("editor-problem").scrollIntoView({ block: "nearest" });
  }
}

function save(event) {
  event.preventDefault();
  attempt(async () => {
    const saved = draft.name === original ? await api.replaceShop(original, draft) : await api.addShop(draft);
    await leave(saved?.name ?? draft.name);
  });
}

async function leave(name) {
  $("editor").close();
  await visited(name);
}

async function imported(file) {
  if (!file) return;
  const type = TYPES[file.name.split(".").pop().toLowerCase()];
  if (!type) throw new Error(`${file.name} is no shop file. Use .yaml, .json or .csv.`);
  const saved = await api.importShop(await file.text(), type);
  await leave(saved.name);
}

async function download(format) {
  const text = await api.exportShop(original, format);
  const address = URL.createObjectURL(new Blob([text], { type: TYPES[format] }));
  h("a", { href: address, download: `${original}.${format}` }).click();
  URL.revokeObjectURL(address);
}
