import { createHash } from "node:crypto";
import { runInNewContext, Script } from "node:vm";
import { expect, test } from "vitest";
import { eventData } from "../../../activities/store/event-data.ts";
import { readPage } from "../../../client/serve/page.ts";

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

test("an event is a line of the page's log, a part of it, or left out on purpose", () => {
  const [, script = ""] = /<script>([^]*?)<\/script>/.exec(readPage().html) ?? [];
  const [, notes = ""] = /\nconst NOTES = \{\n([^]*?)\n\};/.exec(script) ?? [];
  const shown = [
    ...notes.matchAll(/^ {2}"([a-z:-]+)":/gm),
    ...script.matchAll(/^ +case "([a-z]+:[a-z-]+)":/gm),
  ];
  const leftOut = [
    "llm:thinking",
    // Shown as the queue.
    "message:queued",
    "sandbox:adopted",
    "sandbox:left",
    "sandbox:removed",
    "sandbox:saved",
  ];
  const known = new Set([...shown.map(([, type]) => type), ...leftOut]);
  expect(known).toEqual(new Set(Object.keys(eventData)));
});

test("a new sandbox is a line only if it is not as it was asked for", () => {
  const [, script = ""] = /<script>([^]*?)<\/script>/.exec(readPage().html) ?? [];
  const [notes = ""] = /const NOTES = \{\n[^]*?\n\};/.exec(script) ?? [];
  const line = (data: object) =>
    runInNewContext(`${notes} JSON.stringify(NOTES["sandbox:created"](${JSON.stringify(data)}))`) as unknown;
  expect(line({})).toBeUndefined();
  expect(line({ network: { reach: "allowed", why: "asked for" } })).toBeUndefined();
  expect(line({ network: { reach: "open", why: "no rules" } })).toContain("private addresses: no rules");
  expect(line({ gaps: ["no quota"] })).toContain("not isolated as configured: no quota");
});
