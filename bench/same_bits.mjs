// What bench/same_bits.cc writes, by the npm package, in node or with browser=1 in Chromium:
//
//   node same_bits.mjs PACKAGE MODEL OUT [tokens=5000] [restore=0] [write=PREFIX] [read=PREFIX] [browser=0]
//
// write and read, for states of another machine, are for node alone.
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { openPage } from "./chromium.mjs";

// Runs in either place, so it has everything that it needs inside. exchange(bytes) gets each state as it is written.
function score(model, way, exchange) {
  const FULL_EVERY = 25, BEST = 5;
  const MASK = (1n << 64n) - 1n;

  class SplitMix64 {
    constructor(seed) {
      this.state = seed;
    }
    next() {
      this.state = (this.state + 0x9E3779B97F4A7C15n) & MASK;
      let mixed = this.state;
      mixed = ((mixed ^ (mixed >> 30n)) * 0xBF58476D1CE4E5B9n) & MASK;
      mixed = ((mixed ^ (mixed >> 27n)) * 0x94D049BB133111EBn) & MASK;
      return mixed ^ (mixed >> 31n);
    }
    below(bound) {
      return Number(((this.next() >> 32n) * BigInt(bound)) >> 32n);
    }
  }

  const scores = [];
  let session = model.createSession(), asked = 0, restored = 0;
  const random = new SplitMix64(2n);
  for (let left = way.tokens; left > 0;) {
    const count = Math.min(left, model.positions || left);
    left -= count;
    const ids = Array.from({ length: count }, () => random.below(random.below(model.vocabularySize) + 1));
    session.reset();
    for (let i = 0; i < count; ++i) {
      session.step(ids[i]);
      if (way.restore && ++restored % way.restore === 0) {
        const saved = session.save(), bytes = saved.bytes();
        session.close();
        saved.close();
        exchange?.(bytes);
        session = model.createSession();
        const read = model.readState(bytes);
        session.restore(read);
        read.close();
      }
      const next = session.logProbability(ids[(i + 1) % count]);
      scores.push(next);
      if (asked++ % FULL_EVERY !== 0) continue;
      scores.push(...session.logProbabilities());
      const best = session.topK(BEST), { low, high } = session.interval(best[0].id);
      scores.push(...best.flatMap(({ id, logProbability }) => [id, logProbability]), Number(low), Number(high));
    }
  }
  session.close();
  return new Uint8Array(Float64Array.from(scores).buffer);
}

const [folder, path, out, ...options] = process.argv.slice(2);
const way = { tokens: 5000, restore: 0, browser: 0 };
for (const option of options) {
  const [name, value] = option.split("=");
  way[name] = name === "write" || name === "read" ? value : Number(value);
}

async function inNode() {
  const { loadKinglet } = await import(pathToFileURL(resolve(folder, "kinglet.js")));
  let exchanged = 0;
  const exchange = (bytes) => {
    const number = exchanged++;
    if (way.write) writeFileSync(way.write + number, bytes);
    if (way.read && Buffer.compare(readFileSync(way.read + number), bytes) !== 0) {
      throw Object.assign(new Error(`${way.read}${number}: expected this machine's state`), { status: "KINGLET_INTERNAL" });
    }
  };
  return score((await loadKinglet()).openModel(await readFile(path)), way, exchange);
}

// The page has everything in itself, as scripts/page does it: a message of the DevTools protocol may not be as long.
async function inChromium() {
  const base64 = async (file) => (await readFile(file)).toString("base64");
  const library = (await readFile(resolve(folder, "kinglet.js"), "utf8")).replace(/^export /gm, "");
  const place = await mkdtemp(join(tmpdir(), "kinglet-page-"));
  await writeFile(join(place, "page.html"), `<script type="module">${library}
    const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    globalThis.scores = (async () => {
      const kinglet = await loadKinglet(bytes("${await base64(resolve(folder, "kinglet.wasm"))}"));
      return (${score})(kinglet.openModel(bytes("${await base64(path)}")), ${JSON.stringify(way)});
    })();
  </script>`);
  const page = await openPage(pathToFileURL(join(place, "page.html")).href);
  try {
    await page.until("globalThis.scores !== undefined");
    const size = await page.evaluate(
        "scores.then((all) => all.length, ({ status, message }) => ({ status, message }))");
    if (size.message) throw Object.assign(new Error(size.message), size);
    const parts = [], most = 3072;
    for (let i = 0; i < size; i += 256 * most) {
      parts.push(Buffer.from(await page.evaluate(`scores.then((all) => {
        let text = "";
        for (let i = ${i}; i < Math.min(all.length, ${i + 256 * most}); i += ${most}) {
          text += btoa(String.fromCharCode(...all.subarray(i, i + ${most})));
        }
        return text;
      })`), "base64"));
    }
    return Buffer.concat(parts);
  } finally {
    await page.close();
    await rm(place, { recursive: true });
  }
}

try {
  await writeFile(out, await (way.browser ? inChromium() : inNode()));
} catch (error) {
  if (!error.status) throw error;
  console.error(error.message);
  process.exit(error.status === "KINGLET_UNSUPPORTED" ? 3 : 1);
}
