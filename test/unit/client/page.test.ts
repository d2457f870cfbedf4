import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { runInNewContext, Script } from "node:vm";
import { expect, test } from "vitest";
import { eventData } from "../../../activities/store/event-data.ts";
import type { EventData, EventType, SessionEvent } from "../../../activities/store/event.ts";
import { describeEvent } from "../../../client/view/describe-event.ts";
import { unseenWarning } from "../../../client/sessions/send-answer.ts";
import { readPage } from "../../../client/serve/server.ts";

test("the page's script and style are complete, and the policy allows exactly them", () => {
  const { html, policy } = readPage();
  const [, style = ""] = /<style>([^]*?)<\/style>/.exec(html) ?? [];
  const [, script = ""] = /<script>([^]*?)<\/script>/.exec(html) ?? [];
  expect(() => new Script(script)).not.toThrow();
  expect(script).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|document\.write/);
  for (const text of [style, script]) {
    expect(text.length).toBeGreaterThan(1_000);
    expect(policy).toContain(`'sha256-${createHash("sha256").update(text).digest("base64")}'`);
  }
});

/** What the page's log shows of events, as the server sends them: each part's look and text. */
function logOf(...events: readonly SessionEvent[]): string[] {
  const shown: { className: string; textContent: string }[] = [];
  const element = () => ({
    className: "",
    textContent: "",
    append: () => undefined,
    remove: () => undefined,
  });
  const place = {
    replaceChildren: () => undefined,
    append: (...parts: (typeof shown)[number][]) => void shown.push(...parts),
  };
  const frames = events.map((event) => ({ ...event, sentences: describeEvent(event) }));
  const source = readFileSync(new URL("../../../client/serve/page/show.js", import.meta.url), "utf8");
  runInNewContext(
    `const HIDDEN = /(?!)/gu; ${source}; const log = new Log(place); for (const frame of frames) log.show(frame);`,
    { document: { createElement: element }, place, frames },
  );
  return shown.map(({ className, textContent }) => `${className}: ${textContent}`);
}

const event = <Type extends EventType>(type: Type, data: EventData[Type]): SessionEvent => ({
  seq: 1,
  sessionId: "s",
  epoch: 1,
  step: 1,
  attempt: 1,
  at: "2026-01-02T03:04:05.000Z",
  type,
  data,
});

test("the page draws only events that exist in a way of its own", () => {
  const { html } = readPage();
  const own = [...html.matchAll(/^ +case "([a-z]+:[a-z-]+)":/gm)].map(([, type = ""]) => type);
  expect(own.length).toBeGreaterThan(5);
  expect(own.filter((type) => !(type in eventData))).toEqual([]);
});

test("an event is a line of the page's log in the server's words", () => {
  const pushed = event("git:pushed", { commits: 1, branch: "b", commit: "c" });
  const failed = event("setup:ended", {
    container: "c",
    status: "failed",
    durationMs: 5,
    output: "1\n2",
    command: "npm ci",
    how: "exit 1",
  });
  expect(logOf(pushed, failed)).toEqual([
    "note good: ⇡ pushed 1 commit to b (c)",
    "note warn: ! set-up failed at npm ci (exit 1)\n1\n2",
  ]);
});

test("a new sandbox is a line only if it is not as it was asked for", () => {
  const line = (data: object) =>
    logOf(event("sandbox:created", { container: "c", workspace: "empty", ...data }));
  expect(line({})).toEqual([]);
  expect(line({ network: { reach: "allowed", why: "asked for" }, allow: ["10.0.0.0/8"] })).toEqual([]);
  expect(line({ network: { reach: "open", why: "no rules" } })).toEqual([
    "note warn: ! the sandbox can reach private addresses: no rules",
  ]);
  expect(line({ gaps: ["no quota"] })).toEqual([
    "note warn: ! the sandbox is not isolated as configured: no quota",
  ]);
});

test("a run's end has its figures, and the answer only if it was not just shown", () => {
  const usage = { input: 10, cached: 0, output: 1, reasoning: 0, calls: 1 };
  const end = { text: "Hi.", usage, costUsd: null, steps: 2, rounds: 0, durationMs: 5 };
  expect(logOf(event("session:ended", { ...end, status: "failed", reason: "no model" }))).toEqual([
    "outcome bad: ✗ failed · 2 steps · 10 tokens in, 1 out · 5 ms\nno model\nHi.",
  ]);
});

test("without a valid token the page says which address to open", async () => {
  const [, script = ""] = /<script>([^]*?)<\/script>/.exec(readPage().html) ?? [];
  const [request = ""] = /async function request[^]*?\n\}/.exec(script) ?? [];
  const context = {
    fetch: () => Promise.resolve({ status: 401, ok: false }),
    token: "",
    AbortSignal,
    ANSWER_MS: 1,
  };
  const asked = runInNewContext(`${request} request("GET", "sessions")`, context) as Promise<unknown>;
  await expect(asked).rejects.toThrow("open the address that longhaul serve printed last");
});

test("a call that was allowed without being shown whole is said, and no other", () => {
  const asked = { session: "s1", kind: "approval" as const, text: "x".repeat(5_000) };
  const warning = (action: "allow" | "deny", change = {}) =>
    unseenWarning({ ...asked, ...change }, { action }).warning;
  expect(warning("allow")).toMatch(/^Warning: .* has 5000 characters.*longhaul questions s1 --all/);
  expect(warning("deny")).toBeUndefined();
  expect(warning("allow", { text: "x" })).toBeUndefined();
  expect(readPage().html).toContain("message: answered.warning");
});
