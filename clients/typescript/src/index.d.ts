// The types of the client. Those of requests and answers are made from the server's OpenAPI file.

import type { components } from "./schema.js";

type Schemas = components["schemas"];
export type Answer = Schemas["Answer"];
export type Visit = Schemas["Visit"];
export type PastTurn = Schemas["PastTurn"];
export type Receipt = Schemas["Receipt"];
export type Character = Schemas["Character"];
export type ShopEntry = Schemas["ShopEntry"];
export type ShopView = Schemas["ShopView"];
/** What a turn comes to, told before its words. */
export type Decision = Pick<Answer, "last" | "state" | "cart" | "price">;

export class HaggleError extends Error {
  readonly status: number;
  readonly where: string;
  readonly hint: string;
  readonly position: number | null;
  readonly wait: number;
}
export class Unreachable extends Error {}

export interface Options {
  key?: string;
  tries?: number;
  fetch?: typeof fetch;
  onWait?: (error: Error, seconds: number) => void;
}
export interface Opening {
  character?: string;
  shop?: string | object;
  player?: string;
}
export interface Saying {
  explain?: boolean;
  onState?: (decision: Decision) => void;
  onText?: (piece: string) => void;
  onRestart?: () => void;
  signal?: AbortSignal;
}
export type TurnEvent =
  | { event: "waiting"; data: { position: number } }
  | { event: "state"; data: Decision }
  | { event: "text"; data: { text: string } }
  | { event: "done"; data: Answer };

export class Haggle {
  constructor(url: string, options?: Options);
  characters(): Promise<Character[]>;
  shops(): Promise<ShopEntry[]>;
  shop(name: string): Promise<ShopView>;
  addShop(definition: object): Promise<ShopView>;
  replaceShop(name: string, definition: object): Promise<ShopView>;
  open(opening?: Opening): Promise<Session>;
  resume(id: string): Promise<Session>;
}

export class Session {
  readonly id: string;
  visit: Visit;
  say(text: string, saying?: Saying): Promise<Answer>;
  stream(text: string, saying?: Pick<Saying, "explain" | "signal"> & { key?: string }): AsyncGenerator<TurnEvent>;
  look(): Promise<Visit>;
  turns(): Promise<PastTurn[]>;
  receipts(): Promise<Receipt[]>;
  confirm(review?: string | null): Promise<Answer>;
  close(): Promise<null>;
}
