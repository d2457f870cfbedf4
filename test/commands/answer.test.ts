import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder, finished, longhaul, statusOf, untilStatus } from "../support/commands/longhaul.ts";

test("shows a question with the command that answers it, and accepts the first valid answer", async () => {
  const ask = JSON.stringify({
    question: "npm or pnpm?",
    options: ["npm", { label: "pnpm", description: "fast" }],
  });
  const left = await longhaul(["run", `ask: ${ask}\nsay: Done.`, "--exit-on-question"]);
  expect(left.code).toBe(7);
  const id = /session ([a-z0-9-]+)/.exec(left.err)?.[1] ?? "";
  expect(left.err).toContain("npm or pnpm?");
  expect(left.err).toContain(`answer ${id} s1c0 --option 1`);
  await untilStatus(id, ({ status }) => status === "waiting");
  expect(await statusOf(id)).toMatchObject({
    status: "waiting",
    questions: [{ id: "s1c0", session: id, kind: "ask", text: "npm or pnpm?", options: ["npm", "pnpm"] }],
  });
  const { out } = await longhaul(["questions", id]);
  expect(out).toContain("  2 pnpm – fast");
  expect(out).toMatch(/ s1c0 · asked \d+ (s|min) ago\n/);
  expect(out).toContain(`answer ${id} s1c0 --option 1`);
  expect((await longhaul(["list", "--status", "waiting"])).out).toContain(id);

  expect(await longhaul(["answer", id, "--option", "3"])).toMatchObject({ code: 5, out: "" });
  const allowed = await longhaul(["answer", id, "--allow"]);
  expect(allowed.code).toBe(5);
  expect(allowed.err).toContain(
    "--allow is for approvals, and this is a question: answer it with --option N or words.",
  );
  expect((await longhaul(["answer", id, "s1c7", "npm"])).code).toBe(5);
  expect((await longhaul(["answer", id, "--option", "2"])).code).toBe(0);
  expect(await longhaul(["watch", id])).toMatchObject({ code: 0, out: "Done.\n" });
  const late = await longhaul(["answer", id, "--option", "1"]);
  expect(late.code).toBe(5);
  expect(late.err).toContain("answered: pnpm");
  const all = JSON.parse((await longhaul(["questions", id, "--all", "--json"])).out) as unknown[];
  expect(all).toMatchObject([{ session: id, id: "s1c0", status: "answered", answer: "pnpm" }]);
});

test("--exit-on-question ends with 7 once nothing goes on without an answer, also of a delegate", async () => {
  const ask = (question: string) => `call: ask_user ${JSON.stringify({ question, block: false })}`;
  const left = await longhaul([
    "run",
    `${ask("MIT?")}\nrun: echo worked > on\nsay: So far.`,
    "--exit-on-question",
  ]);
  expect(left.code).toBe(7);
  const id = /session ([a-z0-9-]+)/.exec(left.err)?.[1] ?? "";
  expect(left.err).toContain(`${id} waits for a person: s1c0. It goes on with the answer.`);
  expect(left.err).toMatch(new RegExp(`longhaul(\\.mjs)? questions ${id}\n`));
  expect(await statusOf(id)).toMatchObject({ status: "waiting", waitsFor: "person", step: 3 });
  // For one who watches from later on, it is as open; as JSON, the words are on stderr.
  const { lastSeq } = await statusOf(id);
  const again = await longhaul(["watch", id, "--from", String(lastSeq), "--json", "--exit-on-question"]);
  expect(again).toMatchObject({ code: 7, out: "" });
  expect(again.err).toContain("waits for a person: s1c0");
  expect((await longhaul(["answer", id, "MIT"])).code).toBe(0);
  expect(await longhaul(["watch", id, "--exit-on-question"])).toMatchObject({ code: 0 });

  const task = `ask: ${JSON.stringify({ question: "npm?" })}\nsay: Asked.`;
  const parent = await longhaul(["run", `call: delegate ${JSON.stringify({ task })}`, "--exit-on-question"]);
  expect(parent.code).toBe(7);
  const parentId = /session ([a-z0-9-]+)/.exec(parent.err)?.[1] ?? "";
  expect(parent.err).toContain(`waits for a person: s1c0 of ${parentId}.s1c0.`);
  expect((await longhaul(["answer", parentId, "npm"])).code).toBe(0);
  expect(await longhaul(["watch", parentId, "--exit-on-question"])).toMatchObject({ code: 0 });
});

test("--exit-on-question ends with 7 at a limit about which a person is asked", async () => {
  const folder = emptyFolder();
  const config = join(folder, "longhaul.yaml");
  writeFileSync(config, "limits: {onLimit: ask, maxSteps: 1}\n");
  const left = await longhaul(["run", "run: true\nsay: Done.", "--config", config, "--exit-on-question"], {
    cwd: folder,
  });
  expect(left.code).toBe(7);
  const id = /session ([a-z0-9-]+)/.exec(left.err)?.[1] ?? "";
  expect(left.err).toContain(`${id} waits for a person, for more: s2steps.`);
  expect(await statusOf(id)).toMatchObject({ status: "waiting", waitsFor: "budget" });
  expect((await longhaul(["answer", id, "--option", "2"])).code).toBe(0);
  expect((await longhaul(["watch", id, "--exit-on-question"])).code).toBe(3);
});

test("an answer has one form, and a session without questions accepts none", async () => {
  const id = await finished("say: Done.");
  for (const words of [[], ["yes", "--option", "1"], ["--allow", "--deny"]])
    expect((await longhaul(["answer", id, ...words])).code).toBe(2);
  expect((await longhaul(["answer", id, "yes"])).code).toBe(5);
  expect(await longhaul(["questions", id])).toMatchObject({ code: 0, out: "" });
});

test("who allows a call of which only the beginning was shown is told so", async () => {
  const folder = emptyFolder();
  const config = join(folder, "longhaul.yaml");
  writeFileSync(config, "permissions:\n  - tool: bash\n    action: ask\n");
  const long = `true ${"x".repeat(3_000)}`;
  const started = await longhaul(["start", `run: ${long}\nsay: Done.`, "--config", config], { cwd: folder });
  expect(started, started.err).toMatchObject({ code: 0 });
  const id = started.out.trim();
  await untilStatus(id, ({ status }) => status === "waiting");
  const allowed = await longhaul(["answer", id, "--allow", "--json"]);
  expect(allowed, allowed.err).toMatchObject({ code: 0 });
  expect(allowed.err).toMatch(
    /Warning: the call that you allowed has 3\d{3} characters, of which only the beginning was shown/,
  );
  expect(JSON.parse(allowed.out)).toMatchObject({ allowedUnseen: expect.any(Number) });
  expect(await longhaul(["watch", id])).toMatchObject({ code: 0, out: "Done.\n" });
});
