import { expect, test } from "vitest";
import type { SessionStatusDocument } from "../../client/sessions/status-document.ts";
import { begin, finished, longhaul, temporal, untilRunning } from "../support/commands/longhaul.ts";

const printed = async (reference: string) =>
  JSON.parse((await longhaul(["status", reference, "--json"])).out) as SessionStatusDocument;

test("shows a running session's progress as text, and as one JSON document as promised", async () => {
  const id = await begin("run: sleep 100\nsay: Done.");
  await untilRunning(id);
  await longhaul(["say", id, "say: Later."]);
  const status = await printed(id);
  expect(status).toMatchObject({
    id,
    workflowId: id,
    runId: expect.any(String),
    status: "active",
    step: 1,
    epoch: 1,
    model: "openai/gpt-4o",
    queue: [{ id: expect.any(String), text: "say: Later.", queuedAt: expect.any(String) }],
    context: { used: expect.any(Number), limit: 128_000, estimated: expect.any(Boolean) },
    compactionRounds: 0,
    usage: { calls: expect.any(Number), input: expect.any(Number), output: expect.any(Number) },
    result: null,
    error: null,
  });
  const { code, out, err } = await longhaul(["status", id]);
  expect(code).toBe(0);
  expect(out).toContain("openai/gpt-4o");
  expect(err).toBe("");
  expect((await longhaul(["cancel", id])).code).toBe(0);
});

test("agrees with Temporal: search attributes, queries and details", async () => {
  const id = await finished("run: true\nsay: Done.");
  expect(await printed(id)).toMatchObject({
    image: { digest: expect.stringMatching(/^(sha256:[0-9a-f]{64}|.+@sha256:[0-9a-f]{64})$/) },
  });
  const handle = (await temporal()).workflow.getHandle(id);
  const run = await handle.describe();
  expect(run.searchAttributes).toMatchObject({ AgentPhase: ["completed"], AgentModel: ["openai/gpt-4o"] });
  expect(await handle.query("status")).toMatchObject({ status: "completed", step: 2 });
  expect(await handle.query("queue")).toEqual([]);
  expect(String(await handle.query("__temporal_workflow_metadata").then(JSON.stringify))).toContain("step");
});

test("an id may be abbreviated, or be @last; an ambiguous or unknown one is 5 with a suggestion", async () => {
  const id = await finished("say: One.", "--id", "short-typing-one");
  await finished("say: Two.", "--id", "short-typing-two");
  expect((await printed("short-typing-o")).id).toBe(id);
  const several = await longhaul(["status", "short-typing"]);
  expect(several).toMatchObject({ code: 5, out: "" });
  expect(several.err).toContain("short-typing-two, short-typing-one");
  const near = await longhaul(["diff", "short-tpying-one"]);
  expect(near).toMatchObject({ code: 5, out: "" });
  expect(near.err).toContain("Did you mean short-typing-one?");
  // Other files start and delete sessions meanwhile: it is at least as new as the newest before.
  const newest = async () => {
    const { out } = await longhaul(["list", "--limit", "50", "--json"]);
    return (JSON.parse(out) as { readonly id: string }[]).map((row) => row.id);
  };
  const before = await newest();
  const last = (await printed("@last")).id;
  const after = await newest();
  const oldest = after.findIndex((row) => before.includes(row));
  expect(after.slice(0, oldest + 1)).toContain(last);
});
