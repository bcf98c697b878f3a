// Types of kinglet.js. Functions throw a KingletError, whose status is a name of kinglet/status.h.

export class KingletError extends Error {
  readonly status: string;
}

/** Without an argument the module reads kinglet.wasm next to kinglet.js. */
export function loadKinglet(wasm?: BufferSource): Promise<Kinglet>;

export interface Kinglet {
  readonly version: string;
  /** The bytes of a model file (.kgl), which are copied and verified. */
  openModel(bytes: Uint8Array | ArrayBuffer): Model;
}

export interface Closable {
  /** Frees the memory. No function may be called afterwards. */
  close(): void;
}

export interface Model extends Closable {
  readonly vocabularySize: number;
  /** False for a model of ids only, which knows no text: `text` and `tokenize` throw. */
  readonly hasWords: boolean;
  /** How many tokens a text may have before positions begin anew; 0: any number. */
  readonly positions: number;
  readonly digest: string;
  text(id: number): string;
  /** Token i is the bytes [ranges[2 i], ranges[2 i + 1]) of the text in UTF-8. */
  tokenize(text: string): { ids: Uint32Array; ranges: Uint32Array };
  detokenize(ids: ArrayLike<number>): string;
  specialToken(which: "unknown" | "begin" | "end of line"): number;
  createSession(): Session;
  createTyping(): Typing;
  /** What State.bytes gave, on this machine or another one. */
  readState(bytes: Uint8Array): State;
}

export interface Word {
  id: number;
  /** Empty for a model of ids only. */
  text: string;
  logProbability: number;
}

/** A stream of tokens. Queries ask what comes next, after the first step. */
export interface Session extends Closable {
  step(id: number): void;
  /** Steps all tokens; element i is the log-probability of token i before it was stepped. */
  score(ids: ArrayLike<number>): Float64Array;
  reset(): void;
  position(): number;
  logProbability(id: number): number;
  logProbabilities(): Float32Array;
  topK(k: number): Word[];
  prefixTopK(prefix: string, k: number): Word[];
  /** The token's part of 2^32, for an arithmetic coder. */
  interval(id: number): { low: bigint; high: bigint };
  save(): State;
  restore(state: State): void;
}

export interface State extends Closable {
  bytes(): Uint8Array;
}

/** A touch: a character, or characters that it may mean, each with a cost in nats. */
export type Touch = string | { character: string; cost: number }[];

export interface Candidate {
  text: string;
  logProbability: number;
  cost: number;
  kind: "word" | "two words" | "letters" | "own word";
}

/** What touches on a keyboard mean (docs/TYPING.md of kinglet). */
export interface Typing extends Closable {
  prepare(session: Session): void;
  find(session: Session, touches: Touch[], k: number, options?: {
    before?: string;
    capitals?: "as written" | "first" | "all";
    finished?: boolean;
    /** Microseconds after which the best found are returned; 0: no limit. */
    deadline?: number;
  }): Candidate[];
}
