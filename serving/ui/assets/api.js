// The HTTP contract: calls, problems, streams, patience.

const KEY = "haggle.key";

// What the server refused: its status, what was wrong, where, what to do.
export class Problem extends Error {
  constructor(status, { message, where, hint, position }, wait) {
    super(message ?? `the server answered ${status}`);
    Object.assign(this, { status, where: where ?? "", hint: hint ?? "", position, wait });
  }

  get told() {
    return [this.message, this.where && `(${this.where})`, this.hint && `- ${this.hint}`].filter(Boolean).join(" ");
  }
}

// Nobody answers, or the answer broke off.
export class Unreachable extends Error {}

export const setKey = (key) => sessionStorage.setItem(KEY, key);

async function problemOf(response) {
  const wait = Number(response.headers.get("Retry-After")) || 0;
  let body = {};
  try {
    body = await response.json();
  } catch {
    // A proxy's page, say: the status has to do.
  }
  return new Problem(response.status, { ...body, ...(body.error ?? {}) }, wait);
}

async function call(method, path, body, type = "application/json", more = {}) {
  const headers = { ...more };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = type;
  const content = typeof body === "string" || body === undefined ? body : JSON.stringify(body);
  let response;
  try {
    response = await fetch(`/v1${path}`, { method, headers, body: content });
  } catch {
    throw new Unreachable("the server does not answer");
  }
  if (!response.ok) throw await problemOf(response);
  return response;
}

const json = async (...request) => {
  const response = await call(...request);
  try {
    return await response.json();
  } catch {
    throw new Unreachable("the answer broke off");
  }
};
const at = (id) => `/sessions/${encodeURIComponent(id)}`;
const shopAt = (name) => `/shops/${encodeURIComponent(name)}`;

export const api = {
  shops: () => json("GET", "/shops"),
  shop: (name) => json("GET", shopAt(name)),
  addShop: (definition) => json("POST", "/shops", definition),
  importShop: (text, type, query = "") => json("POST", `/shops${query}`, text, type),
  replaceShop: (name, definition) => json("PUT", shopAt(name), definition),
  restock: (name) => call("POST", `${shopAt(name)}/restock`),
  exportShop: async (name, format) => (await call("GET", `${shopAt(name)}/export?format=${format}`)).text(),
  fill: (player, purse) => json("PUT", `/players/${encodeURIComponent(player)}`, { purse }),
  characters: () => json("GET", "/characters"),
  open: (opening) => json("POST", "/sessions", opening),
  visit: (id) => json("GET", at(id)),
  turns: (id) => json("GET", `${at(id)}/turns`),
  close: (id) => call("DELETE", at(id)),
  confirm: (id, review) => json("POST", `${at(id)}/confirm`, { review }),
  // The same key for each try: a turn that the server has stored is not made again.
  say: (id, text, key) => stream(`${at(id)}/turns`, { text, stream: true, explain: true }, { "Idempotency-Key": key }),
};

// Server-sent events of a turn: {event, data}. Throws Unreachable where they end too early.
async function* stream(path, body, headers) {
  const response = await call("POST", path, body, "application/json", headers);
  for await (const { event, data } of events(response.body)) {
    if (event === "error") throw new Problem(data.status ?? 503, data, data.retry_after);
    yield { event, data };
    if (event === "done") return;
  }
  throw new Unreachable("the answer broke off");
}

export async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    let part;
    try {
      part = await reader.read();
    } catch {
      throw new Unreachable("the answer broke off");
    }
    if (part.done) return;
    text = (text + part.value).replaceAll("\r\n", "\n");
    const blocks = text.split("\n\n");
    text = blocks.pop();
    yield* blocks.map(readBlock).filter(Boolean);
  }
}

function readBlock(block) {
  const lines = block.split("\n");
  const event = lines.find((line) => line.startsWith("event:"))?.slice(6).trim() ?? "message";
  const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).trim());
  return data.length ? { event, data: JSON.parse(data.join("\n")) } : null;
}

const pause = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));
const MOST_REFUSALS = 4; // of a server that answers, but not now

// Does something until it succeeds, waiting ever longer (0.5 to 8 s) while nobody answers or there
// is a queue. `told(error, seconds)` says so; told(null) when it is over.
export async function patiently(action, told) {
  let refusals = 0;
  for (let attempt = 0; ; attempt += 1) {
    try {
      const result = await action(attempt);
      if (attempt) told(null);
      return result;
    } catch (error) {
      const again = error instanceof Unreachable || error.status === 429 || waits(error, attempt);
      if (!(error instanceof Unreachable) && error.status !== 429) refusals += 1;
      if (!again || refusals > MOST_REFUSALS) {
        if (attempt) told(null);
        throw error;
      }
      const seconds = error.wait || Math.min(8, 0.5 * 2 ** attempt);
      told(error, seconds);
      await pause(seconds);
    }
  }
}

// 502 to 504: a server that starts. 409 after a broken answer: the turn may still be under way.
function waits(error, attempt) {
  return [502, 504].includes(error.status) || (error.status === 503 && error.wait > 0) || (error.status === 409 && attempt > 0);
}
