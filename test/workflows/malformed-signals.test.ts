/** What Temporal's own tools may send: no converter of ours has looked at it. */
import { randomUUID } from "node:crypto";
import { Client, Connection, type WorkflowHandle } from "@temporalio/client";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { cleanText } from "../../activities/text/clean.ts";
import type { ModelStepFacts } from "../../activities/contract/activities.ts";
import type { Guidance } from "../../activities/contract/guidance.ts";
import { answered, bashCall } from "../support/fake-activities.ts";
import { eventually } from "../support/eventually.ts";
import { play } from "../support/play-loop.ts";

let connection: Connection;
let client: Client;
beforeAll(async () => {
  connection = await Connection.connect({ address: inject("temporalAddress") });
  client = new Client({ connection });
});
afterAll(() => connection.close());

const wordsOf = (items: readonly Guidance[]) =>
  items.flatMap((item) =>
    item.parts.map((part) => (part.type === "text" ? part.text : `<${part.mediaType}>`)),
  );

/** Answers once something was sent. */
async function afterSending(
  send: (signal: (name: string, argument?: unknown) => Promise<void>, id: string) => Promise<void>,
) {
  let release: (facts: ModelStepFacts) => void = () => undefined;
  const first = new Promise<ModelStepFacts>((resolve) => (release = resolve));
  return play({ steps: [() => first, answered()] }, async (handle, fake) => {
    await fake.untilAsked(1);
    const raw = client.workflow.getHandle(handle.workflowId);
    try {
      await send((name, argument) => raw.signal(name, argument), handle.workflowId);
    } finally {
      release(answered([bashCall]));
    }
  });
}

interface RawPayload {
  readonly encoding?: string;
  readonly data: string;
}
const rawOf = ({ encoding, data }: RawPayload) => ({
  metadata: encoding === undefined ? undefined : { encoding: Buffer.from(encoding) },
  data: Buffer.from(data),
});
const executionOf = (workflowId: string) => ({ namespace: "default", workflowExecution: { workflowId } });

async function sendRaw(workflowId: string, signalName: string, payloads: readonly RawPayload[]) {
  await connection.workflowService.signalWorkflowExecution({
    ...executionOf(workflowId),
    signalName,
    input: { payloads: payloads.map(rawOf) },
  });
}

/** @throws Error with the refusal's words */
async function updateRaw(workflowId: string, payload: RawPayload): Promise<void> {
  const { outcome } = await connection.workflowService.updateWorkflowExecution({
    ...executionOf(workflowId),
    waitPolicy: { lifecycleStage: 3 },
    request: {
      meta: { updateId: randomUUID(), identity: "test" },
      input: { name: "sendGuidance", args: { payloads: [rawOf(payload)] } },
    },
  });
  if (outcome?.failure) throw new Error(outcome.failure.message ?? "");
}

async function detailsOf(handle: WorkflowHandle): Promise<string> {
  const { currentDetails } = await handle.query<{ currentDetails?: string }>("__temporal_workflow_metadata");
  // Temporal leaves it out while it is empty.
  return currentDetails ?? "";
}

it.each([
  ["an argument that cannot be decoded", { encoding: "json/protobuf", data: "{}" }],
  ["null", { encoding: "json/plain", data: "null" }],
  ["messages that are none", { encoding: "json/plain", data: '{"guidance":[{"id":"a"}]}' }],
  ["an order that is none", { encoding: "json/plain", data: '{"deliver":{}}' }],
  ["state that no run leaves", { encoding: "json/plain", data: '{"carried":{"inbox":7}}' }],
])("a start from elsewhere with %s fails at once, in words", async (_name, payload) => {
  const workflowId = `loop-${randomUUID()}`;
  await play({ steps: [answered()] }, async (handle) => {
    const { taskQueue } = await client.workflow.getHandle(handle.workflowId).describe();
    await connection.workflowService.startWorkflowExecution({
      namespace: "default",
      workflowId,
      workflowType: { name: "codingAgent" },
      taskQueue: { name: taskQueue },
      requestId: randomUUID(),
      input: { payloads: [rawOf(payload)] },
      memo: { fields: { note: rawOf({ encoding: "json/protobuf", data: "{}" }) } },
    });
    const failure: unknown = await client.workflow
      .getHandle(workflowId)
      .result()
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ cause: { type: "BadConfiguration" } });
  });
});

describe("a signal from elsewhere", () => {
  it("that is not a message is shown as ignored, and harms nothing", { tags: ["R49"] }, async () => {
    const nonsense: unknown[] = [
      7,
      null,
      true,
      [],
      {},
      { text: 7 },
      { parts: "x" },
      { parts: [null] },
      "",
      { text: " " },
    ];
    const { fake, value } = await afterSending(async (signal) => {
      for (const message of nonsense) await signal("guidance", message);
      await signal("guidance");
      await signal("compact", 7);
      await signal("nobody", { listens: true });
    });
    expect(value?.status).toBe("completed");
    expect(fake.takenMessages()).toEqual([]);
  });

  it("that cannot be decoded is dropped with a remark, and the run continues", async () => {
    const payloads = [
      { encoding: "json/protobuf", data: '{"text":"hello"}' },
      { encoding: "binary/encrypted", data: "\u0001\u0002" },
      { encoding: "json/plain", data: '{"text":' },
      { data: '"hello"' },
    ];
    const { fake, value } = await afterSending(async (signal, id) => {
      const handle = client.workflow.getHandle(id);
      for (const [name, remark] of [
        ["guidance", "guidance signal was ignored"],
        ["compact", "signal compact was ignored: it could not be decoded"],
        ["undoCompaction", "signal undoCompaction was ignored: it could not be decoded"],
        ["interrupt", "signal interrupt was ignored: it could not be decoded"],
      ] as const) {
        for (const payload of payloads) await sendRaw(id, name, [payload]);
        await eventually(`${name} is remarked`, async () => (await detailsOf(handle)).includes(remark));
      }
      for (const payload of payloads)
        await expect(updateRaw(id, payload)).rejects.toThrow(/Not a message|metadata/);
      await signal("guidance", { id: "after", text: "after it" });
    });
    expect(value?.status).toBe("completed");
    expect(wordsOf(fake.takenMessages())).toEqual(["after it"]);
    expect(fake.inputsOf("summarize")).toHaveLength(1);
    expect(fake.inputsOf("undoCompaction")).toHaveLength(payloads.length);
  });

  it("may bring keys that mean something to JavaScript; only what we know is taken", async () => {
    const message: unknown = JSON.parse(
      '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"id":"__proto__","parts":[{"type":"text","text":"hello","providerOptions":{"openai":{}}}]}',
    );
    const { fake, value } = await afterSending((signal) => signal("guidance", message));
    expect(value?.status).toBe("completed");
    expect(fake.takenMessages()).toEqual([
      { id: "__proto__", parts: [{ type: "text", text: "hello" }], queuedAt: expect.any(String) },
    ]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it.each([
    ["1.5 MB of words", "word ".repeat(300_000)],
    ["1.5 MB of Chinese", "汉".repeat(500_000)],
    ["control characters", "\u0001".repeat(200_000)],
  ])("of %s loses nothing and ends no run", { tags: ["R44", "R49"] }, async (_name, text) => {
    const { fake, value, failure } = await afterSending(async (signal) => {
      await signal("guidance", { id: "long", text });
      await signal("guidance", { id: "after", text: "after it" });
    });
    expect(failure).toBeUndefined();
    expect(value?.status).toBe("completed");
    expect(wordsOf(fake.takenMessages()).join("")).toBe(`${cleanText(text)}after it`);
  });

  it("of a million unreadable parts is taken, its words first", async () => {
    const { fake, value } = await afterSending((signal) =>
      signal("guidance", { text: "hello", parts: Array.from({ length: 900_000 }, () => 7) }),
    );
    expect(value?.status).toBe("completed");
    expect(wordsOf(fake.takenMessages())[0]).toBe("hello");
  });

  it("of 5 MB is refused to its sender by the server, and the run continues", async () => {
    // Without the client's own retries, of which a refusal for its size has many.
    const once = await Connection.connect({ address: inject("temporalAddress"), interceptors: [] });
    const huge = { id: "huge", text: "x".repeat(5_000_000) };
    const { fake, value } = await afterSending(async (signal, id) => {
      const refused = new Client({ connection: once }).workflow.getHandle(id).signal("guidance", huge);
      await expect(refused).rejects.toThrow();
      await signal("guidance", { id: "small", text: "small" });
    });
    await once.close();
    expect(value?.status).toBe("completed");
    expect(fake.takenMessages().map((item) => item.id)).toEqual(["small"]);
  });
});

it("an update from elsewhere that takes back nothing is refused in words, whatever was sent", async () => {
  const { value } = await afterSending(async (_signal, id) => {
    const handle = client.workflow.getHandle(id);
    for (const sent of [[], [null], [7], [{}], [{ parked: "yes" }]])
      await expect(
        handle.executeUpdate("withdrawMessage", { args: sent as [unknown] }),
      ).rejects.toMatchObject({
        cause: { type: "GuidanceRefused", message: expect.stringContaining("not waiting") as string },
      });
  });
  expect(value?.status).toBe("completed");
});
