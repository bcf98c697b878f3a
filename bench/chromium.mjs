// A page in a headless Chromium, by its DevTools protocol. Needs node with --experimental-websocket or node 22.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

const NAMES = ["chromium", "chromium-browser", "google-chrome"];

function start(folder) {
  const words = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", `--user-data-dir=${folder}`,
                 "about:blank"];
  return new Promise((resolve, reject) => {
    const next = (names) => {
      if (names.length === 0) return reject(new Error(`expected one of ${NAMES.join(", ")}, found none`));
      const process = spawn(names[0], words, { stdio: ["ignore", "ignore", "pipe"], detached: true });
      process.once("error", () => next(names.slice(1)));
      let text = "";
      process.stderr.on("data", (data) => {
        text += data;
        const address = text.match(/DevTools listening on (ws:\S+)/);
        if (address) resolve({ process, address: address[1] });
      });
    };
    next(NAMES);
  });
}

class Connection {
  constructor(socket) {
    this.socket = socket;
    this.waiting = new Map();
    this.count = 0;
    socket.addEventListener("message", ({ data }) => {
      const { id, result, error } = JSON.parse(data);
      this.waiting.get(id)?.(error ? Promise.reject(new Error(error.message)) : result);
      this.waiting.delete(id);
    });
    socket.addEventListener("close", () => {
      for (const end of this.waiting.values()) end(Promise.reject(new Error("Chromium closed the connection")));
    });
  }

  send(method, params = {}, sessionId = this.sessionId) {
    const id = ++this.count;
    this.socket.send(JSON.stringify({ id, method, params, sessionId }));
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }
}

export async function openPage(url) {
  const folder = await mkdtemp(join(tmpdir(), "kinglet-chromium-"));
  const { process, address } = await start(folder);
  const socket = new WebSocket(address);
  await new Promise((resolve) => socket.addEventListener("open", resolve));
  const connection = new Connection(socket);
  const { targetId } = await connection.send("Target.createTarget", { url });
  const { sessionId } = await connection.send("Target.attachToTarget", { targetId, flatten: true });
  connection.sessionId = sessionId;

  const page = {
    send: (method, params) => connection.send(method, params),
    async evaluate(expression) {
      const done = await connection.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
      if (done.exceptionDetails) {
        throw new Error(done.exceptionDetails.exception?.description ?? done.exceptionDetails.text);
      }
      return done.result.value;
    },
    async until(expression) {
      for (let i = 0; i < 600; ++i) {
        if (await page.evaluate(expression)) return;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      throw new Error(`expected ${expression} within a minute`);
    },
    async key(key, modifiers = 0) {
      const event = { key, code: key, modifiers, windowsVirtualKeyCode: key === "Tab" ? 9 : 13,
                      text: key === "Enter" ? "\r" : undefined };
      await connection.send("Input.dispatchKeyEvent", { type: "keyDown", ...event });
      await connection.send("Input.dispatchKeyEvent", { type: "keyUp", ...event });
    },
    async close() {
      await connection.send("Browser.close", {}, undefined).catch(() => {});
      socket.close();
      await new Promise((resolve) => (process.exitCode === null ? process.once("exit", resolve) : resolve()));
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
  return page;
}
