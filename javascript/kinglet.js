// kinglet for JavaScript: language models in browsers and node, by the C interface of kinglet.wasm.
// Numbers are those of the library on every other machine, bit for bit. kinglet.d.ts describes each
// function.

const NO_LANE = 0;
const TYPING_INPUT_BYTES = 88;
const TYPING_KINDS = ["word", "two words", "letters", "own word"];
const CAPITALS = ["as written", "first", "all"];
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class KingletError extends Error {
  constructor(status, message) {
    super(message);
    this.name = "KingletError";
    this.status = status;
  }
}

async function read(url) {
  if (url.protocol === "file:") {
    const { readFile } = await import("node:fs/promises");
    return readFile(url);
  }
  const response = await fetch(url);
  if (!response.ok) throw new KingletError("KINGLET_IO_ERROR", `${url}: ${response.status}`);
  return response.arrayBuffer();
}

// The module's memory and functions; `call` makes a failure an exception.
class Library {
  constructor(exports) {
    this.exports = exports;
  }

  // Calls body(take), where take(bytes) gives the address of memory that lives until body returns.
  with(body) {
    const taken = [];
    const take = (bytes) => {
      const place = this.exports.malloc(Math.max(bytes, 1));
      if (place === 0) throw new KingletError("KINGLET_OUT_OF_MEMORY", `no ${bytes} bytes left`);
      taken.push(place);
      return place;
    };
    try {
      return body(take);
    } finally {
      for (const place of taken) this.exports.free(place);
    }
  }

  call(name, ...values) {
    const status = this.exports[name](...values);
    if (status === 0) return;
    const code = this.text(this.exports.kinglet_status_name(status));
    throw new KingletError(code, this.text(this.exports.kinglet_error_message()));
  }

  // What the call writes to its last argument, a number that `Type` holds.
  get(Type, name, ...values) {
    return this.with((take) => {
      const place = take(8);
      this.call(name, ...values, place);
      return this.view(Type, place, 1)[0];
    });
  }

  // A new handle, the call's last argument.
  create(name, ...values) {
    return this.get(Uint32Array, name, ...values);
  }

  // A text or bytes that the call writes: NAME(.., buffer, capacity, needed).
  bytes(name, ...values) {
    return this.with((take) => {
      const needed = take(8);
      this.exports[name](...values, 0, 0n, needed);  // too small
      const size = Number(this.view(BigUint64Array, needed, 1)[0]);
      const buffer = take(size);
      this.call(name, ...values, buffer, BigInt(size), needed);
      return this.view(Uint8Array, buffer, size).slice();
    });
  }

  textOf(name, ...values) {
    return decoder.decode(this.bytes(name, ...values).subarray(0, -1));  // without the NUL
  }

  view(Type, place, count) {
    return new Type(this.exports.memory.buffer, place, count);
  }

  copy(take, array) {
    const place = take(array.byteLength);
    this.view(Uint8Array, place, array.byteLength)
        .set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
    return place;
  }

  // The address of a text and of the NUL after it, and its length.
  copyText(take, text) {
    const bytes = encoder.encode(`${text}\0`);
    return [this.copy(take, bytes), BigInt(bytes.length - 1)];
  }

  text(place) {
    const memory = new Uint8Array(this.exports.memory.buffer);
    return decoder.decode(memory.slice(place, memory.indexOf(0, place)));
  }
}

// A handle of the library, which close() destroys.
class Handle {
  constructor(library, handle, destroy) {
    this.library = library;
    this.handle = handle;
    this.destroy = destroy;
  }

  close() {
    this.library.exports[this.destroy](this.handle);
    this.handle = 0;
  }
}

class Model extends Handle {
  constructor(library, handle) {
    super(library, handle, "kinglet_model_close");
    this.vocabularySize = library.get(Uint32Array, "kinglet_model_vocabulary_size", handle);
    this.hasWords = library.get(Int32Array, "kinglet_model_has_words", handle) !== 0;
    try {
      this.positions = library.get(Uint32Array, "kinglet_model_positions", handle);
    } catch (error) {
      if (error.status !== "KINGLET_UNSUPPORTED") throw error;
      this.positions = 0;  // its streams have no end
    }
    this.digest = library.textOf("kinglet_model_digest", handle);
  }

  text(id) {
    return this.library.textOf("kinglet_model_token_text", this.handle, id);
  }

  tokenize(text) {
    const { library } = this;
    return library.with((take) => {
      const [place, length] = library.copyText(take, text);
      const needed = take(8);
      const count = () => library.view(BigUint64Array, needed, 1)[0];
      const call = (ids, ranges, capacity) => library.call(
          "kinglet_model_tokenize", this.handle, place, length, ids, ranges, capacity, needed);
      call(0, 0, 0n);
      const size = Number(count());
      const ids = take(4 * size), ranges = take(16 * size);
      call(ids, ranges, count());
      return {
        ids: library.view(Uint32Array, ids, size).slice(),
        ranges: Uint32Array.from(library.view(BigUint64Array, ranges, 2 * size), Number),
      };
    });
  }

  detokenize(ids) {
    const { library } = this;
    return library.with((take) => library.textOf(
        "kinglet_model_detokenize", this.handle, library.copy(take, Uint32Array.from(ids)),
        BigInt(ids.length)));
  }

  specialToken(which) {
    const number = ["unknown", "begin", "end of line"].indexOf(which) + 1;
    return this.library.get(Uint32Array, "kinglet_model_special_token", this.handle, number);
  }

  createSession() {
    const handle = this.library.create("kinglet_session_create", this.handle, 0);
    return new Session(this, handle);
  }

  createTyping() {
    return new Typing(this, this.library.create("kinglet_typing_create", this.handle));
  }

  readState(bytes) {
    const { library } = this;
    return library.with((take) => new State(library, library.create(
        "kinglet_state_read", this.handle, library.copy(take, bytes), BigInt(bytes.length))));
  }
}

class State extends Handle {
  constructor(library, handle) {
    super(library, handle, "kinglet_state_destroy");
  }

  bytes() {
    return this.library.bytes("kinglet_state_write", this.handle);
  }
}

class Session extends Handle {
  constructor(model, handle) {
    super(model.library, handle, "kinglet_session_destroy");
    this.model = model;
  }

  step(id) {
    this.library.call("kinglet_session_step", this.handle, NO_LANE, id);
  }

  score(ids) {
    const { library } = this;
    return library.with((take) => {
      const place = library.copy(take, Uint32Array.from(ids)), scores = take(8 * ids.length);
      library.call("kinglet_session_step_many", this.handle, NO_LANE, place, BigInt(ids.length),
                   scores, 0);
      return library.view(Float64Array, scores, ids.length).slice();
    });
  }

  reset() {
    this.library.call("kinglet_session_reset", this.handle, NO_LANE);
  }

  position() {
    return Number(
        this.library.get(BigUint64Array, "kinglet_session_position", this.handle, NO_LANE));
  }

  logProbability(id) {
    return this.library.get(Float64Array, "kinglet_session_log_probability", this.handle, NO_LANE,
                            id);
  }

  logProbabilities() {
    const { library } = this, size = this.model.vocabularySize;
    return library.with((take) => {
      const out = take(4 * size);
      library.call("kinglet_session_log_probabilities", this.handle, NO_LANE, out, BigInt(size));
      return library.view(Float32Array, out, size).slice();
    });
  }

  topK(k) {
    return this.best("kinglet_session_top_k", k);
  }

  prefixTopK(prefix, k) {
    return this.library.with((take) => this.best(
        "kinglet_session_prefix_top_k", k, ...this.library.copyText(take, prefix)));
  }

  best(name, k, ...values) {
    const { library, model } = this;
    return library.with((take) => {
      const ids = take(4 * k), scores = take(8 * k), count = take(4);
      library.call(name, this.handle, NO_LANE, ...values, k, ids, scores, BigInt(k), count);
      const found = library.view(Uint32Array, count, 1)[0];
      const probabilities = library.view(Float64Array, scores, found).slice();
      return Array.from(library.view(Uint32Array, ids, found).slice(), (id, i) => ({
        id, text: model.hasWords ? model.text(id) : "", logProbability: probabilities[i],
      }));
    });
  }

  interval(id) {
    const { library } = this;
    return library.with((take) => {
      const low = take(8), high = take(8);
      library.call("kinglet_session_interval", this.handle, NO_LANE, id, low, high);
      return { low: library.view(BigUint64Array, low, 1)[0],
               high: library.view(BigUint64Array, high, 1)[0] };
    });
  }

  save() {
    const { library } = this;
    return new State(library, library.create("kinglet_session_save", this.handle, NO_LANE));
  }

  restore(state) {
    this.library.call("kinglet_session_restore", this.handle, NO_LANE, state.handle);
  }
}

class Typing extends Handle {
  constructor(model, handle) {
    super(model.library, handle, "kinglet_typing_destroy");
  }

  prepare(session) {
    this.library.call("kinglet_typing_prepare", this.handle, session.handle, NO_LANE);
  }

  find(session, touches, k, options = {}) {
    const { library } = this;
    return library.with((take) => {
      const keys = touches.flatMap((touch) => typeof touch === "string"
        ? [{ character: touch, cost: 0 }] : touch);
      const ends = [0];
      for (const touch of touches) {
        ends.push(ends.at(-1) + (typeof touch === "string" ? 1 : touch.length));
      }
      const input = take(TYPING_INPUT_BYTES);
      library.call("kinglet_typing_input_init", input, TYPING_INPUT_BYTES);
      const places = [
        library.copy(take, Uint32Array.from(ends)),
        library.copy(take, Uint32Array.from(keys, (key) => key.character.codePointAt(0))),
        library.copy(take, Float64Array.from(keys, (key) => key.cost)),
      ];
      const before = library.copyText(take, options.before ?? "")[0];
      // The fields of kinglet_typing_input (kinglet/typing.h) by their places.
      const fields = new DataView(library.exports.memory.buffer, input, TYPING_INPUT_BYTES);
      fields.setUint32(4, touches.length, true);
      places.forEach((place, i) => fields.setUint32(8 + 4 * i, place, true));
      fields.setUint32(64, CAPITALS.indexOf(options.capitals ?? "as written"), true);
      fields.setUint32(68, options.finished ? 1 : 0, true);
      fields.setBigUint64(72, BigInt(options.deadline ?? 0), true);
      fields.setUint32(80, before, true);

      const room = 512 * k, texts = take(room), offsets = take(8 * (k + 1)), scores = take(8 * k),
            costs = take(8 * k), kinds = take(4 * k), count = take(4);
      library.call("kinglet_typing_find", this.handle, session.handle, NO_LANE, input, k, texts,
                   BigInt(room), 0, offsets, scores, costs, kinds, count, 0);
      const found = library.view(Uint32Array, count, 1)[0];
      return Array.from({ length: found }, (_, i) => ({
        text: library.text(texts + Number(library.view(BigUint64Array, offsets, found)[i])),
        logProbability: library.view(Float64Array, scores, found)[i],
        cost: library.view(Float64Array, costs, found)[i],
        kind: TYPING_KINDS[library.view(Uint32Array, kinds, found)[i]],
      }));
    });
  }
}

export class Kinglet {
  constructor(exports) {
    this.library = new Library(exports);
    this.version = this.library.text(exports.kinglet_version_string());
  }

  openModel(bytes) {
    const { library } = this;
    return library.with((take) => new Model(library, library.create(
        "kinglet_model_open_memory", library.copy(take, new Uint8Array(bytes)),
        BigInt(bytes.byteLength), 0)));
  }
}

export async function loadKinglet(wasm) {
  let exports;
  const noFile = () => 8;  // WASI's EBADF
  const imports = {
    env: { emscripten_notify_memory_growth: () => {} },
    wasi_snapshot_preview1: {
      clock_time_get(clock, precision, place) {
        const now = BigInt(Math.round(performance.now() * 1e6));
        new DataView(exports.memory.buffer).setBigUint64(place, now, true);
        return 0;
      },
      environ_sizes_get(count, bytes) {
        new Uint32Array(exports.memory.buffer, count, 1)[0] = 0;
        new Uint32Array(exports.memory.buffer, bytes, 1)[0] = 0;
        return 0;
      },
      environ_get: () => 0,
      proc_exit(code) {
        throw new KingletError("KINGLET_INTERNAL", `kinglet.wasm stopped with ${code}`);
      },
      fd_close: noFile, fd_read: noFile, fd_seek: noFile, fd_write: noFile,
    },
  };
  const bytes = wasm ?? await read(new URL("kinglet.wasm", import.meta.url));
  const { instance } = await WebAssembly.instantiate(bytes, imports);
  exports = instance.exports;
  exports._initialize();
  return new Kinglet(exports);
}
