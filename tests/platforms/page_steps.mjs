// What a person does with the page, in Chromium; writes what it then shows as JSON.
//
//   node --experimental-websocket page_steps.mjs PAGE TEXT [FOLDER]    FOLDER: for screenshots
import { readFile, writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { openPage } from "../../bench/chromium.mjs";

const [file, text, folder] = process.argv.slice(2);
const found = {};
const page = await openPage(pathToFileURL(resolve(file)).href);
const words = () => page.evaluate("[...document.querySelectorAll('#words button')].map((button) => button.textContent)");
try {
  await page.until("document.getElementById('text') && !document.getElementById('text').disabled");
  await page.evaluate("document.getElementById('text').focus()");
  const type = async (letters) => {
    await page.send("Input.insertText", { text: letters });
    return words();
  };
  found.first = await words();
  found.after = await type("The city of New ");
  found.completed = await type("Yo");
  found.mistyped = await type("ek");
  await page.key("Tab");  // to the first word
  await page.key("Enter");
  found.text = await page.evaluate("document.getElementById('text').value");
  found.focus = await page.evaluate("document.activeElement.id");
  found.bits = await page.evaluate("[...document.querySelectorAll('#bits td:nth-child(2)')].map((cell) => Number(cell.textContent))");
  found.status = await page.evaluate("document.getElementById('state').textContent");
  found.unnamed = await page.evaluate(`[...document.querySelectorAll('button:enabled, textarea')]
    .filter((place) => !place.textContent && !document.querySelector('label[for=' + place.id + ']')).length`);
  found.requests = await page.evaluate("performance.getEntriesByType('resource').length");

  await type("is the largest city in the state , and it was named after the Duke of ");
  found.widths = [];
  for (const [name, width, height, scheme] of [["phone", 380, 800, "light"], ["phone-dark", 380, 800, "dark"],
                                               ["desktop", 1280, 900, "light"], ["desktop-dark", 1280, 900, "dark"]]) {
    await page.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 500 });
    await page.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
    found.widths.push([width, await page.evaluate("document.documentElement.scrollWidth")]);
    if (!folder) continue;
    const { data } = await page.send("Page.captureScreenshot", { captureBeyondViewport: true });
    await writeFile(`${folder}/${name}.png`, Buffer.from(data, "base64"));
  }

  const passage = JSON.stringify(await readFile(text, "utf8"));
  const measure = (await readFile(new URL("../../bench/web_times.mjs", import.meta.url), "utf8"))
    .match(/export (function measure.*?\n})\n/s)[1];
  found.times = await page.evaluate(`(${measure})(kinglet.model, kinglet.model.tokenize(${passage}).ids.subarray(0, 1200),
                                                  () => performance.now())`);
} finally {
  await page.close();
}
console.log(JSON.stringify(found));
