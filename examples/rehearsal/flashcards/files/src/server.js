// A small web page over the same file. It listens on this machine only, and takes answers only from its own pages.

import { createServer } from "node:http";
import { dayOf } from "./days.js";
import { cardPage, decksPage, donePage } from "./page.js";
import { createSession } from "./session.js";
import { preview } from "./sm2.js";
import { countCards } from "./stats.js";
import { load, save } from "./store.js";

const MAX_BODY_BYTES = 10_000;

/**
 * Starts to listen; `closed` resolves once it was closed.
 * @returns {Promise<{port: number, close: () => void, closed: Promise<void>}>}
 */
export async function startServer({ path, port, today }) {
  const server = createServer((request, response) => {
    void handle(request, { path, day: today || dayOf(new Date()) })
      .catch((error) => ({ status: error.status ?? 500, body: error.message, type: "text/plain" }))
      .then(({ status = 200, body = "", type = "text/html", location }) => {
        const headers = { "content-type": `${type}; charset=utf-8`, ...(location ? { location } : {}) };
        response.writeHead(status, headers).end(body);
      });
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  const closed = new Promise((resolve) => server.once("close", resolve));
  const close = () => {
    server.close();
    // A browser keeps its connection open; waiting for it would take seconds.
    server.closeAllConnections();
  };
  return { port: server.address().port, close, closed };
}

async function handle(request, { path, day }) {
  const url = new URL(request.url, "http://127.0.0.1");
  const route = `${request.method} ${url.pathname}`;
  const collection = await load(path);
  if (route === "GET /") return { body: decksPage(countCards(collection, day)) };
  if (route === "GET /review") {
    const deck = url.searchParams.get("deck") || undefined;
    const session = createSession(collection, { day, deck });
    const card = session.current();
    if (card === undefined) return { body: donePage() };
    const shown = url.searchParams.has("show");
    return {
      body: cardPage({ card, left: session.left, shown, intervals: preview(card.schedule, day), deck }),
    };
  }
  if (route === "POST /answer") {
    checkOrigin(request);
    const form = new URLSearchParams(await readBody(request));
    const deck = form.get("deck") || undefined;
    const session = createSession(collection, { day, deck });
    // Another card than the one that was shown: answered in another window. Nothing is changed.
    if (session.current()?.id === Number(form.get("id"))) {
      session.answer(form.get("grade"));
      await save(path, session.collection);
    }
    return { status: 303, location: `/review${deck ? `?deck=${encodeURIComponent(deck)}` : ""}` };
  }
  throw Object.assign(new Error("There is no such page."), { status: 404 });
}

// A page elsewhere must not be able to grade cards by sending a form here.
function checkOrigin(request) {
  const { origin, host } = request.headers;
  if (origin !== undefined && origin !== `http://${host}`) {
    throw Object.assign(new Error("Answers are taken from this page only."), { status: 403 });
  }
}

async function readBody(request) {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) {
    text += chunk;
    if (text.length > MAX_BODY_BYTES) throw Object.assign(new Error("Too much."), { status: 413 });
  }
  return text;
}
