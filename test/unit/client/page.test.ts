import { createHash } from "node:crypto";
import { runInNewContext, Script } from "node:vm";
import { expect, test } from "vitest";
import { eventData } from "../../../activities/store/event-data.ts";
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

test("a count of one is singular, and a rate limit has a name for people", () => {
  const [, script = ""] = /<script>([^]*?)<\/script>/.exec(readPage().html) ?? [];
  const [notes = ""] = /const LIMITS = \{\n[^]*?\nconst NOTES = \{\n[^]*?\n\};/.exec(script) ?? [];
  const line = (type: string, data: object) =>
    runInNewContext(`${notes} NOTES["${type}"](${JSON.stringify(data)})[0]`) as unknown;
  expect(line("git:pushed", { commits: 1, branch: "b" })).toBe("pushed 1 commit to b");
  expect(line("git:pushed", { commits: 2, branch: "b" })).toBe("pushed 2 commits to b");
  expect(line("llm:throttled", { limit: "requestsPerMinute" })).toContain("limit of requests a minute");
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
  const [, script = ""] = /<script>([^]*?)<\/script>/.exec(readPage().html) ?? [];
  const [source = ""] = /function unseenWarning[^]*?\n\}/.exec(script) ?? [];
  const warning = (chars: number | undefined): unknown =>
    runInNewContext(`${source}; unseenWarning("s1", ${chars})`);
  expect(warning(5_000)).toMatch(/^Warning: .* has 5000 characters.*longhaul questions s1 --all/);
  expect(warning(undefined)).toBeUndefined();
  expect(script).toContain("unseenWarning(session, answered.allowedUnseen)");
});
