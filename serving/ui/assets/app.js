// The page: one visit at a time, its id kept by the browser, so that a reload goes on.

import { api, patiently, Problem, setKey, Unreachable } from "./api.js";
import { $, capital, fill, h, hashed, plain } from "./dom.js";
import { openEditor } from "./editor.js";
import { showExplain } from "./explain.js";
import { showLedger } from "./ledger.js";
import { showPath } from "./path.js";
import { portray } from "./portrait.js";
import { showShelves } from "./shelves.js";
import * as talk from "./talk.js";

const KEPT = "haggle.visit";
const PLAYER = "haggle.player";
const COINS = 1000; // of a new player
const SALE = "COMMIT_SALE";
const page = { visit: null, shop: null, characters: [], been: new Set(), busy: false };

const kind = () => page.characters.find(({ name }) => name === page.visit?.character)?.kind ?? "trade";

// --- notes and trouble

function note(text, bad = true) {
  $("note").hidden = !text;
  $("note").textContent = text ?? "";
  $("note").classList.toggle("bad", bad);
}

function waiting(error, seconds) {
  if (!error) {
    note("The server is back.", false);
    setTimeout(() => note(null), 2500);
  } else if (error instanceof Unreachable) {
    note(`The server does not answer. Trying again in ${Math.ceil(seconds)} s. Nothing is lost.`);
  } else {
    const place = error.position ? ` You are number ${error.position} in the queue.` : "";
    note(`The server is busy.${place} Trying again in ${Math.ceil(seconds)} s.`);
  }
}

const patient = (action) => patiently(action, waiting);

async function guarded(action) {
  try {
    return await action();
  } catch (error) {
    if (error.status === 401) askKey();
    else note(error instanceof Problem ? error.told : `The page failed: ${error.message}`);
    if (!(error instanceof Problem)) console.error(error);
    return undefined;
  }
}

function askKey() {
  $("key").showModal();
}

// --- showing a visit

function show(visit) {
  page.visit = visit;
  const trade = kind() === "trade";
  document.body.classList.toggle("no-shop", !trade);
  $("shop-title").textContent = trade ? "Shelves" : "The task";
  $("shop-field").hidden = $("restock").hidden = $("edit").hidden = $("shelves").hidden = !trade;
  $("goal").hidden = trade;
  page.been.add(visit.procedure.now);
  showPath($("path"), visit.procedure, page.been);
  if (trade) showShelves(visit.shelf, visit.currency, { said: say, typed });
  else showGoal();
  showLedger(visit, { confirmed: confirm, filled });
  talk.showHints(visit, kind(), say);
  $("line").disabled = $("send").disabled = visit.ended;
  $("line").placeholder = visit.ended ? "The talk is over. Start a new visit." : "Say something";
}

function showGoal() {
  const { title, goal } = page.characters.find(({ name }) => name === page.visit.character) ?? {};
  fill(
    $("goal"), h("h3", {}, title ?? capital(plain(page.visit.character))), h("p", {}, goal ? `${capital(goal)}.` : ""),
    h("p", { class: "quiet" }, "The lanterns above are the steps of this task. A step that must come first cannot be skipped, whatever is said."),
  );
}

function showKeeper() {
  const { visit, shop } = page;
  const character = page.characters.find(({ name }) => name === visit.character);
  const name = visit.merchant || character?.title || capital(plain(visit.character));
  const persona = shop?.merchant?.persona ?? capital(character?.goal ?? "");
  $("who").textContent = name;
  $("persona").textContent = persona;
  document.title = `${name} · Haggle`;
  talk.setSpeaker(name.split(",")[0]);
  portray($("portrait"), name, persona);
  document.documentElement.style.setProperty("--awning", hashed(visit.shop ?? visit.character) % 360);
}

async function shopOf(visit) {
  if (!visit.shop) return null;
  try {
    return await api.shop(visit.shop);
  } catch (error) {
    if (error instanceof Problem && error.status === 404) return null; // a shop of the game's own
    throw error;
  }
}

// --- opening, resuming

const drawn = () => [...crypto.getRandomValues(new Uint32Array(3))].map((part) => part.toString(36)).join("");

// Who plays in this browser. The server keeps the purse.
function player() {
  let name = localStorage.getItem(PLAYER);
  if (!name) {
    name = `guest-${drawn()}`;
    localStorage.setItem(PLAYER, name);
  }
  return name;
}

async function withPurse(visit, coins) {
  await patient(() => api.fill(player(), coins));
  return patient(() => api.visit(visit.session));
}

const filled = async (coins) => show((await guarded(() => withPurse(page.visit, coins))) ?? page.visit);

async function begin(opening) {
  page.been = new Set();
  let visit = await patient(() => api.open({ ...opening, player: player() }));
  if (visit.shop && visit.purse === null) visit = await withPurse(visit, COINS);
  localStorage.setItem(KEPT, visit.session);
  await enter(visit, []);
}

async function enter(visit, turns) {
  page.visit = visit;
  page.shop = await patient(() => shopOf(visit));
  chooseIn($("character"), visit.character);
  if (visit.shop) chooseIn($("shop-choice"), visit.shop);
  talk.clearTalk();
  showKeeper();
  if (visit.greeting) talk.merchantLine(visit.greeting);
  const sales = [...visit.sales];
  for (const turn of turns) replay(turn, sales);
  showExplain(turns.length ? { answer: turns.at(-1), explain: turns.at(-1).explain } : null);
  show(visit);
}

// A stored turn names no sale; the visit has them in order.
function replay(turn, sales) {
  for (const state of [turn.last, turn.state]) page.been.add(state);
  if (turn.player) talk.playerLine(turn.player);
  const line = talk.merchantLine(turn.say);
  if (heldBack(turn)) line.append(h("span", { class: "mark" }, "guard stepped in"));
  const sold = turn.state === SALE && turn.last !== SALE ? sales.shift() : null;
  if (sold) talk.saleLine(sold, page.visit.currency);
}

const heldBack = ({ interventions, withheld }) => Boolean(interventions?.length || withheld?.reason);

function chooseIn(select, value) {
  if (![...select.options].some((option) => option.value === value)) select.append(h("option", { value }, value));
  select.value = value;
}

async function resume() {
  const kept = localStorage.getItem(KEPT);
  if (!kept) return false;
  try {
    const [visit, turns] = await patient(() => Promise.all([api.visit(kept), api.turns(kept)]));
    await enter(visit, turns);
    return true;
  } catch (error) {
    if (!(error instanceof Problem) || error.status !== 404) throw error;
    localStorage.removeItem(KEPT);
    note("The last visit is over. This is a new one.", false);
    return false;
  }
}

async function loadChoices() {
  const [shops, characters] = await patient(() => Promise.all([api.shops(), api.characters()]));
  page.characters = characters;
  fill($("shop-choice"), shops.map(({ name, merchant }) => h("option", { value: name }, `${name.replaceAll("_", " ")} (${merchant})`)));
  fill($("character"), characters.map((character) => h("option", { value: character.name }, titleOf(character))));
}

function titleOf({ name, kind: what, title }) {
  const who = what === "sop" ? title?.split(",")[0] : "";
  return capital(plain(name)) + (who ? ` (${who})` : "");
}

const opening = () => {
  const character = $("character").value;
  const trade = page.characters.find(({ name }) => name === character)?.kind !== "sop";
  return trade ? { character, shop: $("shop-choice").value } : { character };
};

// --- a turn

async function say(text) {
  if (page.busy || !text.trim()) return;
  busy(true);
  $("line").value = "";
  talk.playerLine(text);
  const line = talk.streamedLine();
  talk.mood("thinking");
  const key = drawn();
  const answer = await guarded(() => patient((attempt) => turn(text, key, line, attempt)));
  talk.mood("");
  if (answer) await settled(answer, line);
  else {
    line.drop();
    $("line").value = text; // what was typed is not lost
  }
  busy(false);
  $("line").focus();
}

// One try at a turn. Where the server has stored it already, its answer comes again, without `explain`.
async function turn(text, key, line, attempt) {
  if (attempt) line.restart();
  for await (const { event, data } of api.say(page.visit.session, text, key)) {
    if (event === "text") {
      talk.mood("speaking");
      line.add(data.text);
    } else if (event === "state") applied(data);
    else if (event === "done") return data;
  }
  throw new Unreachable("the answer broke off");
}

// The decision is applied before the line is spoken: path and cart move first.
function applied({ state, cart, price }) {
  const procedure = { ...page.visit.procedure, now: state, legal: [] };
  page.been.add(state);
  showPath($("path"), procedure, page.been);
  showLedger({ ...page.visit, cart: cart ?? page.visit.cart, price: price ?? null, review: null }, { confirmed: confirm, filled });
}

async function settled(answer, line) {
  line.done(answer.say, heldBack(answer));
  if (answer.sale) talk.saleLine(answer.sale, page.visit.currency);
  for (const state of [answer.last, answer.state]) page.been.add(state);
  showExplain({ answer, explain: answer.explain });
  const visit = await guarded(() => patient(() => api.visit(page.visit.session)));
  if (visit) show(visit);
}

async function confirm(review) {
  if (page.busy) return;
  busy(true);
  const answer = await guarded(() => patient(() => api.confirm(page.visit.session, review)));
  if (answer) {
    talk.noteLine("You confirm with the button.");
    await settled(answer, talk.streamedLine());
  }
  busy(false);
}

function typed(text) {
  view("talk");
  $("line").value = text;
  $("line").focus();
}

function busy(on) {
  page.busy = on;
  $("send").disabled = on || page.visit?.ended;
  $("log").setAttribute("aria-busy", String(on));
}

// --- the page itself

function view(name) {
  document.body.dataset.view = name;
  for (const button of $("views").children) {
    if (button.dataset.view === name) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
}

const THEMES = { "": "Auto", light: "Light", dark: "Dark" };

function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
  $("theme").textContent = THEMES[name];
  localStorage.setItem("haggle.theme", name);
}

function wire() {
  theme(localStorage.getItem("haggle.theme") ?? "");
  $("theme").onclick = () => {
    const names = Object.keys(THEMES);
    theme(names[(names.indexOf(document.documentElement.dataset.theme ?? "") + 1) % names.length]);
  };
  for (const button of $("views").children) button.onclick = () => view(button.dataset.view);
  $("form").onsubmit = (event) => {
    event.preventDefault();
    say($("line").value);
  };
  $("new").onclick = $("character").onchange = $("shop-choice").onchange = () => guarded(() => begin(opening()));
  $("restock").onclick = () => guarded(async () => {
    await patient(() => api.restock(page.visit.shop));
    show(await patient(() => api.visit(page.visit.session)));
  });
  $("edit").onclick = () => guarded(async () => openEditor(await patient(() => api.shop(page.visit.shop)), async (name) => {
    await loadChoices();
    await begin({ character: "merchant", shop: name });
  }));
  $("key-form").onsubmit = (event) => {
    event.preventDefault();
    setKey($("key-value").value);
    location.reload();
  };
}

async function start() {
  await loadChoices();
  if (!(await resume())) await begin(opening());
  document.body.dataset.ready = "yes";
}

wire();
guarded(start);
