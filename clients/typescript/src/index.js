// A client of `haggle serve`, for browsers, Node, Deno and Bun. No dependencies.

import { events } from "./sse.js";

/** What the server refused: `status`, what was wrong, `where`, and a `hint` what to do. */
export class HaggleError extends Error {
  constructor(status, { message, where = "", hint = "", position = null } = {}, wait = 0) {
    super(message ?? `the server answered ${status}`);
    this.name = "HaggleError";
    Object.assign(this, { status, where, hint, position, wait });
  }
}

/** Nobody answers, or an answer broke off. */
export class Unreachable extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = "Unreachable";
  }
}

const PAUSE = 0.5; // seconds before the second try, doubled each time
const LONGEST_PAUSE = 8;

export class Haggle {
  /**
   * @param {string} url of the server, such as http://127.0.0.1:8000
   * @param {{key?: string, tries?: number, fetch?: typeof fetch, onWait?: (error: Error, seconds: number) => void}} [options]
   */
  constructor(url, { key, tries = 8, fetch = globalThis.fetch.bind(globalThis), onWait = () => {} } = {}) {
    this.url = url.replace(/\/+$/, "");
    Object.assign(this, { key, tries, fetch, onWait });
  }

  characters() { return this.json("GET", "/characters"); }
  shops() { return this.json("GET", "/shops"); }
  shop(name) { return this.json("GET", `/shops/${encodeURIComponent(name)}`); }
  addShop(definition) { return this.json("POST", "/shops", definition); }
  replaceShop(name, definition) { return this.json("PUT", `/shops/${encodeURIComponent(name)}`, definition); }

  /** Open a session: a character and, for the merchant, a shop by name or a whole shop. */
  async open(opening = {}) {
    return new Session(this, await this.json("POST", "/sessions", opening));
  }

  /** Go on with a session whose id the game kept. */
  async resume(id) {
    return new Session(this, await this.json("GET", `/sessions/${encodeURIComponent(id)}`));
  }

  async json(method, path, body) {
    return this.patiently(async () => {
      const response = await this.send(method, path, body);
      if (response.status === 204) return null;
      try {
        return await response.json();
      } catch (cause) {
        throw new Unreachable("the answer broke off", { cause });
      }
    });
  }

  async send(method, path, body, { signal, headers = {} } = {}) {
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    let response;
    try {
      response = await this.fetch(`${this.url}/v1${path}`, { method, headers, signal, body: body && JSON.stringify(body) });
    } catch (cause) {
      if (signal?.aborted) throw cause;
      throw new Unreachable("the server does not answer", { cause });
    }
    if (response.ok) return response;
    const told = await response.json().catch(() => ({}));
    throw new HaggleError(response.status, { ...told.error, position: told.position }, Number(response.headers.get("Retry-After")) || 0);
  }

  /** Try `action(attempt)` until it succeeds; wait longer each time while nobody answers or there is a queue. */
  async patiently(action) {
    for (let attempt = 0; ; attempt += 1) {
      try {
        return await action(attempt);
      } catch (error) {
        if (!again(error, attempt) || attempt + 1 >= this.tries) throw error;
        const seconds = error.wait || Math.min(LONGEST_PAUSE, PAUSE * 2 ** attempt);
        this.onWait(error, seconds);
        await new Promise((done) => setTimeout(done, 1000 * seconds));
      }
    }
  }
}

// 409 after a broken answer: the turn may still be under way.
function again(error, attempt) {
  if (error instanceof Unreachable) return true;
  return [429, 502, 504].includes(error.status) || (error.status === 503 && error.wait > 0) || (error.status === 409 && attempt > 0);
}

// Unlike all keys of a session before. Pages without https have no crypto.randomUUID.
const newKey = () => `${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;

export class Session {
  constructor(client, visit) {
    Object.assign(this, { client, visit, id: visit.session });
    this.path = `/sessions/${encodeURIComponent(visit.session)}`;
  }

  /** Say a line. `onState` hears the decision, `onText` the words as they come; the answer counts. */
  async say(text, { explain = false, onState = () => {}, onText = () => {}, onRestart = () => {}, signal } = {}) {
    const key = newKey(); // the same for each try: a turn that the server has stored is not made again
    return this.client.patiently(async (attempt) => {
      if (attempt) onRestart();
      for await (const { event, data } of this.stream(text, { explain, signal, key })) {
        if (event === "state") onState(data);
        else if (event === "text") onText(data.text);
        else if (event === "done") return data;
      }
      throw new Unreachable("the answer broke off");
    });
  }

  /** The events of one turn as they come: waiting, state, text, done. No second try; who makes one sends the same key. */
  async *stream(text, { explain = false, signal, key = newKey() } = {}) {
    const headers = { "Idempotency-Key": key };
    const response = await this.client.send("POST", `${this.path}/turns`, { text, stream: true, explain }, { signal, headers });
    try {
      for await (const { event, data } of events(response.body)) {
        if (event === "error") throw new HaggleError(data.status ?? 503, data, data.retry_after);
        yield { event, data };
        if (event === "done") return;
      }
    } catch (cause) {
      if (cause instanceof HaggleError || signal?.aborted) throw cause;
      throw new Unreachable("the answer broke off", { cause });
    }
    throw new Unreachable("the answer broke off");
  }

  /** Where the session stands now. */
  async look() {
    this.visit = await this.client.json("GET", this.path);
    return this.visit;
  }

  turns() { return this.client.json("GET", `${this.path}/turns`); }
  receipts() { return this.client.json("GET", `${this.path}/receipts`); }
  close() { return this.client.json("DELETE", this.path); }

  /** Close the sale of the review on the table, as a button in the game does. */
  confirm(review = this.visit.review) { return this.client.json("POST", `${this.path}/confirm`, { review }); }
}
