/** What Temporal's own tools may send: no converter of ours has looked at it. */
import { Client, Connection } from "@temporalio/client";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import type { Guidance, ModelStepFacts } from "../../activities/contract.ts";
import { answered, bashCall, type FakeActivities } from "../support/fake-activities.ts";
import { eventually } from "../support/eventually.ts";
import { play } from "../support/play-loop.ts";

let connection: Connection;
let client: Client;
beforeAll(async () => {
  connection = await Connection.connect({ address: inject("temporalAddress") });
  client = new Client({ connection });
});
afterAll(() => connection.close());

/** All that was taken, in order: parked messages were said before those that a step carries. */
function taken(fake: FakeActivities): Guidance[] {
  return fake.asked.flatMap(({ name, input }) => {
    if (name === "parkGuidance") return [...(input as { items: readonly Guidance[] }).items];
    return name === "modelStep" ? [...(input as { guidance: readonly Guidance[] }).guidance] : [];
  });
}
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
    await eventually("the model is asked", () => fake.inputsOf("modelStep").length > 0);
    const raw = client.workflow.getHandle(handle.workflowId);
    try {
      await send((name, argument) => raw.signal(name, argument), handle.workflowId);
    } finally {
      release(answered([bashCall]));
    }
  });
}

describe("a signal from elsewhere", () => {
  it("that is no message is shown as ignored, and harms nothing [R49]", async () => {
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
      for (const one of nonsense) await signal("guidance", one);
      await signal("guidance");
      await signal("compact", 7);
      await signal("nobody", { listens: true });
    });
    expect(value?.status).toBe("completed");
    expect(taken(fake)).toEqual([]);
  });

  it("may bring keys that mean something to JavaScript; only what we know is taken", async () => {
    const message: unknown = JSON.parse(
      '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}},"id":"__proto__","parts":[{"type":"text","text":"hello","providerOptions":{"openai":{}}}]}',
    );
    const { fake, value } = await afterSending((signal) => signal("guidance", message));
    expect(value?.status).toBe("completed");
    expect(taken(fake)).toEqual([
      { id: "__proto__", parts: [{ type: "text", text: "hello" }], queuedAt: expect.any(String) },
    ]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
  });

  it.each([
    ["1.5 MB of words", "word ".repeat(300_000)],
    ["1.5 MB of Chinese", "汉".repeat(500_000)],
    ["control characters", "\u0001".repeat(200_000)],
  ])("of %s loses nothing and ends no run [R44] [R49]", async (_name, text) => {
    const { fake, value, failure } = await afterSending(async (signal) => {
      await signal("guidance", { id: "long", text });
      await signal("guidance", { id: "after", text: "after it" });
    });
    expect(failure).toBeUndefined();
    expect(value?.status).toBe("completed");
    expect(wordsOf(taken(fake)).join("")).toBe(`${text}after it`);
  });

  it("of 5 MB is refused to its sender by the server, and the run goes on", async () => {
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
    expect(taken(fake).map((item) => item.id)).toEqual(["small"]);
  });
});
