// Microseconds a token by the npm package, medians:
//
//   node web_times.mjs PACKAGE MODEL TEXT [TOKENS]
//
// step: a token alone; best: and the three best words after it; all: and the log-probability of every word. In a browser
// the page of examples/web calls measure().
export function measure(model, ids, now) {
  const session = model.createSession();
  const ways = { step: () => {}, best: () => session.topK(3), all: () => session.logProbabilities() };
  const times = { step: [], best: [], all: [] };
  ids.forEach((id, i) => {
    const way = Object.keys(ways)[i % 3];
    const begin = now();
    session.step(id);
    ways[way]();
    times[way].push(1000 * (now() - begin));
  });
  session.close();
  return Object.fromEntries(Object.entries(times).map(
    ([way, list]) => [way, Math.round(list.sort((a, b) => a - b)[list.length >> 1])]));
}

if (globalThis.process?.argv[1]?.endsWith("web_times.mjs")) {
  const { readFile } = await import("node:fs/promises");
  const [folder, path, text, count] = process.argv.slice(2);
  const { loadKinglet } = await import(new URL(`${folder}/kinglet.js`, `file://${process.cwd()}/`));
  const model = (await loadKinglet()).openModel(await readFile(path));
  const { ids } = model.tokenize(await readFile(text, "utf8"));
  console.log(measure(model, ids.subarray(0, Number(count ?? 1200)), () => performance.now()));
}
