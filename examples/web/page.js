// The page's behaviour. scripts/page puts kinglet.js before it, and after it kinglet.wasm, a model
// and the bytes of its parts.

const SHOWN = 3;
const NATS_PER_BIT = Math.LN2;
const SURPRISING = 16;  // bits that have the full colour
const NEIGHBOUR_COST = 5;  // of a key next to the one that was touched, in nats
const ROWS = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];
const MEDIAN_OF = 64;

const at = (id) => document.getElementById(id);
const number = new Intl.NumberFormat("en");

// The characters that a key may stand for, with what each costs.
function touchOf(letter) {
  const row = ROWS.findIndex((keys) => keys.includes(letter.toLowerCase()));
  if (row < 0) return letter;
  const column = ROWS[row].indexOf(letter.toLowerCase());
  const near = [[row, column - 1], [row, column + 1], [row - 1, column], [row - 1, column + 1],
                [row + 1, column - 1], [row + 1, column]];
  return [{ character: letter, cost: 0 }, ...near.map(([r, c]) => ROWS[r]?.[c]).filter(Boolean)
    .map((character) => ({ character, cost: NEIGHBOUR_COST }))];
}

function medianOf(times) {
  return times.length ? Math.round([...times].sort((a, b) => a - b)[times.length >> 1]) : "–";
}

async function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// A stream of the text's tokens: what is only appended is not read again.
class Reader {
  constructor(model) {
    this.model = model;
    this.session = model.createSession();
    this.typing = model.createTyping();
    this.times = [];
    this.searches = [];
    this.begin();
  }

  begin() {
    this.session.reset();
    this.session.step(this.model.specialToken("begin"));
    this.ids = [];
    this.bits = [];
  }

  read(text) {
    const { ids, ranges } = this.model.tokenize(text);
    if (this.ids.some((id, i) => id !== ids[i])) this.begin();
    const added = ids.subarray(this.ids.length);
    if (added.length > 0) {
      const begin = performance.now();
      const scores = this.session.score(added);
      this.times.push(1000 * (performance.now() - begin) / added.length);
      this.times.splice(0, this.times.length - MEDIAN_OF);
      this.ids.push(...added);
      this.bits.push(...Array.from(scores, (score) => -score / NATS_PER_BIT));
    }
    return ranges;
  }

  find(letters, capitals) {
    const begin = performance.now();
    const found = this.typing.find(this.session, [...letters].map(touchOf), SHOWN,
                                   { capitals, deadline: 200000 });
    this.searches.push(1000 * (performance.now() - begin));
    this.searches.splice(0, this.searches.length - MEDIAN_OF);
    return found;
  }
}

class Page {
  constructor(model) {
    this.model = model;
    this.reader = new Reader(model);
    this.field = at("text");
    this.buttons = [...at("words").children];
    this.field.addEventListener("input", () => this.update());
    this.buttons.forEach((button) => button.addEventListener("click", () => this.take(button)));
    this.field.disabled = false;
    this.update();
  }

  // The text up to the caret: complete words, and the letters of the one being typed.
  parts() {
    const before = this.field.value.slice(0, this.field.selectionStart);
    const letters = before.match(/[\p{L}\p{N}'’-]*$/u)[0];
    return { context: before.slice(0, before.length - letters.length), letters };
  }

  update() {
    const { context, letters } = this.parts();
    const ranges = this.reader.read(context);
    const isFirst = /(^|[.!?]\s+)$/.test(context);
    const found = this.reader.find(letters, isFirst ? "first" : "as written");
    this.buttons.forEach((button, i) => {
      button.textContent = found[i]?.text ?? "";
      button.disabled = !found[i];
    });
    this.show(context, ranges);
    at("time").textContent = medianOf(this.reader.times);
    at("search").textContent = medianOf(this.reader.searches);
    at("state").textContent = "";
  }

  take(button) {
    const { context, letters } = this.parts();
    const word = button.textContent;
    const start = word.startsWith("'") ? context.trimEnd() : context;
    const rest = this.field.value.slice(context.length + letters.length);
    this.field.value = `${start}${word} ${rest}`;
    const caret = start.length + word.length + 1;
    this.field.setSelectionRange(caret, caret);
    this.field.focus();
    this.update();
    at("state").textContent = `${word} added`;
  }

  // The words read so far, coloured; their bits in a table too.
  show(text, ranges) {
    const bytes = new TextEncoder().encode(text), decoder = new TextDecoder();
    const words = [], rows = [];
    this.reader.bits.forEach((bits, i) => {
      const word = decoder.decode(bytes.subarray(ranges[2 * i], ranges[2 * i + 1]));
      words.push(decoder.decode(bytes.subarray(i > 0 ? ranges[2 * i - 1] : 0, ranges[2 * i])));
      const span = document.createElement("span");
      span.textContent = word;
      span.title = `${bits.toFixed(1)} bits`;
      span.style.setProperty("--share", Math.min(bits / SURPRISING, 1) * 0.75);
      words.push(span);
      const row = document.createElement("tr");
      row.append(...[word, bits.toFixed(1)].map((cell) => {
        const place = document.createElement("td");
        place.textContent = cell;
        return place;
      }));
      rows.push(row);
    });
    at("surprise").replaceChildren(...words);
    at("bits").replaceChildren(...rows);
  }
}

function showParts(parts) {
  const total = Object.values(parts).reduce((sum, bytes) => sum + bytes, 0);
  at("bytes").textContent = `${(total / 1e6).toFixed(1)} MB`;
  at("parts").replaceChildren(...Object.entries({ ...parts, total }).map(([name, bytes]) => {
    const row = document.createElement("tr"), bar = document.createElement("td");
    bar.className = "bar";
    const mark = document.createElement("i");
    mark.style.width = `${100 * bytes / total}%`;
    bar.append(mark);
    for (const text of [name, number.format(bytes)]) {
      const cell = document.createElement("td");
      cell.textContent = text;
      row.append(cell);
    }
    row.append(bar);
    return row;
  }));
}

async function open({ wasm, model, parts }) {
  showParts(parts);
  try {
    const kinglet = await loadKinglet(await unpack(wasm));
    // For the browser's console, and for tests.
    globalThis.kinglet = { model: kinglet.openModel(await unpack(model)) };
    globalThis.kinglet.page = new Page(globalThis.kinglet.model);
  } catch (error) {
    at("state").textContent = `This browser cannot run the model: ${error.message}`;
    throw error;
  }
}
