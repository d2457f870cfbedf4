/** Images, files and reasoning: stored once, shown to the model if it supports them, described in words otherwise. */
import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { buildMessages } from "../../activities/context/request.ts";
import { refusedParts } from "../../activities/step/answer-facts.ts";
import { saveBlob } from "../../activities/store/blobs.ts";
import { blobs, sessions } from "../../activities/store/schema/index.ts";
import { loadRatio } from "../../activities/store/model-calls.ts";
import { loadView } from "../../activities/store/load-view.ts";
import type { ParsedRequest, WirePart } from "../support/model-server/wire.ts";
import { openDirectAgent, type DirectAgentOptions } from "../support/direct-agent.ts";
import { bigPng, DOT_PNG, png } from "../support/images.ts";
import { call, scriptedModel, text, thought, type ModelScript } from "../support/scripted-model.ts";
import { wordsOf } from "../support/scripted-summaries.ts";
import { resultTexts, transcriptOf } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { askedAs } from "../support/run-config.ts";

const database = useDatabase();

const start = (script: ModelScript, options?: DirectAgentOptions) =>
  openDirectAgent(database, script, options);

/** Images of a request, with the kind of item they stand in. */
function imagesOf(request: ParsedRequest | undefined): { readonly in: string; readonly part: WirePart }[] {
  return (request?.items ?? []).flatMap((item) =>
    item.type === "message" || item.type === "result"
      ? item.parts
          .filter((part) => part.type === "image")
          .map((part) => ({ in: item.type === "message" ? item.role : "result", part }))
      : [],
  );
}

const PICTURE = png(8, 8, [20, 120, 200]);

describe.each(["responses", "chat"] as const)("on the %s wire", (api) => {
  it("an image that a tool shows is in every request from then on, and is stored once", async () => {
    const script = scriptedModel()
      .calls("view_image", { path: "shot.png" })
      .answers(call("view_image", { path: "again.png" }), call("read_file", { path: "notes.txt" }))
      .says("A blue square, twice.");
    const agent = await start(script, { config: { api } });
    await agent.sandbox.files.write("shot.png", PICTURE);
    await agent.sandbox.files.write("again.png", PICTURE);
    await agent.sandbox.files.write("notes.txt", Buffer.from("nothing of note"));
    for (const step of [1, 2, 3]) await agent.step(step);
    const [first, second, third] = agent.model.requests;
    expect(imagesOf(first)).toEqual([]);
    const seen = {
      in: api === "responses" ? "result" : "user",
      part: { type: "image", mediaType: "image/png", bytes: PICTURE.length },
    };
    expect(imagesOf(second)).toEqual([seen]);
    expect(imagesOf(third)).toEqual([seen, seen]);
    const rows = await transcriptOf(database.store, agent.id);
    const stored = JSON.stringify(rows.map((row) => row.content));
    expect(stored).toContain("@blob:");
    expect(stored).not.toContain(PICTURE.toString("base64").slice(0, 40));
    const kept = await database.store.db.select().from(blobs);
    expect(kept.filter((blob) => blob.bytes.length === PICTURE.length)).toHaveLength(1);
  });

  it("an image of the task or of a later message stands between its texts, where it was put", async () => {
    const script = scriptedModel().says("I see one.").says("I see both.");
    const image = await saveBlob(database.store.db, PICTURE, "image/png", "shot.png");
    const dot = await saveBlob(database.store.db, DOT_PNG, "image/png", "dot.png");
    const agent = await start(script, { config: { api }, task: "Rebuild this:", parts: [image] });
    await agent.step(1);
    const parts = [
      { type: "text", text: "not like" } as const,
      dot,
      { type: "text", text: "but red" } as const,
    ];
    await agent.step(2, [{ id: "look", parts, queuedAt: "2026-11-21T10:00:00.000Z" }]);
    const users = (agent.model.requests[1]?.items ?? []).flatMap((item) =>
      item.type === "message" && item.role === "user"
        ? [item.parts.map((part) => (part.type === "text" ? part.text : part.bytes))]
        : [],
    );
    expect(users).toEqual([
      ["Rebuild this:", PICTURE.length],
      ["not like", DOT_PNG.length, "but red"],
    ]);
  });

  it(
    "a model without image input gets a text instead, with an event, and the image stays stored",
    { tags: ["case-33"] },
    async () => {
      const script = scriptedModel()
        .calls("view_image", { path: "shot.png" })
        .says("I cannot.")
        .says("Still not.");
      const agent = await start(script, { config: { api, input: ["text"] } });
      await agent.sandbox.files.write("shot.png", PICTURE);
      await agent.step(1);
      await agent.step(2);
      const [, asked] = agent.model.requests;
      expect(imagesOf(asked)).toEqual([]);
      expect(asked && wordsOf(asked)).toContain(
        "image/png) is not shown: this model does not accept such files.",
      );
      const unsupported = async () =>
        (await agent.events()).filter((type) => type === "llm:unsupported-input");
      expect(await unsupported()).toHaveLength(1);
      await agent.step(3);
      expect(await unsupported()).toHaveLength(1);
      const [row] = (await transcriptOf(database.store, agent.id)).filter(
        (message) => message.role === "tool",
      );
      expect(JSON.stringify(row?.content)).toContain("@blob:");
    },
  );

  it("an image that the provider refuses is described to the model, once, and reported", async () => {
    const damaged = png(2_000, 2_000, [20, 120, 200]);
    // In the pixels' stream, whose length stays: only who draws it notices.
    damaged.fill(0xff, 45, 50);
    const script = scriptedModel()
      .calls("view_image", { path: "shot.png" })
      .calls("view_image", { path: "dot.png" })
      .says("It is damaged.");
    const agent = await start(script, { config: { api } });
    await agent.sandbox.files.write("shot.png", damaged);
    await agent.sandbox.files.write("dot.png", DOT_PNG);
    await agent.step(1);
    const { db } = database.store;
    const learnt = await loadRatio(db, "openai/gpt-4o");
    for (const step of [2, 3]) await agent.step(step);
    expect(await loadRatio(db, "openai/gpt-4o")).toEqual(learnt);
    expect(agent.model.log.map(({ status }) => status)).toEqual([200, 400, 200, 200]);
    const [, second, third] = agent.model.requests;
    expect(second && wordsOf(second)).toContain("(image/png) is not shown. openai refuses the request (400)");
    expect(imagesOf(third).map(({ part }) => part.type === "image" && part.bytes)).toEqual([DOT_PNG.length]);
    expect(await agent.dataOf("llm:unsupported-input")).toEqual([
      {
        mediaType: "image/png",
        message: expect.stringMatching(
          /^The model is not shown a file \(image\/png\), .* does not represent a valid image/,
        ),
      },
    ]);
    expect(await agent.dataOf("llm:error")).toEqual([]);
    // A fork on the same worker has the image too, and is asked without it from the start.
    const [event] = await agent.dataOf("llm:unsupported-input");
    const { message } = event as { message: string };
    const why = message.slice(message.indexOf("openai refuses"));
    const answer = { refusedParts: [{ mediaType: "image/png", why, isNew: false }] };
    const news = (id: string) =>
      refusedParts({ deps: { store: database.store }, session: { id }, input: { step: 4 } }, answer);
    expect(await news(agent.id)).toEqual([]);
    expect(await news("fork")).toMatchObject([{ step: 4, data: { message } }]);
  });

  it("reasoning is stored, and goes back if the wire has a place for it", async () => {
    const script = scriptedModel()
      .answers(thought("The file comes first."), text("I read it."), call("read_file", { path: "a.txt" }))
      .says("It is empty.");
    const agent = await start(script, o3(api));
    await agent.sandbox.files.write("a.txt", Buffer.from("\n"));
    await agent.step(1);
    await agent.step(2);
    const items = agent.model.requests[1]?.items ?? [];
    const place = items.findIndex((item) => item.type === "reasoning");
    if (api === "chat") expect(place).toBe(-1);
    else {
      expect(items[place]).toMatchObject({ encrypted: expect.any(String) });
      expect(items.slice(place + 1).map((item) => item.type)).toEqual(["message", "call", "result"]);
      const [answer] = (await transcriptOf(database.store, agent.id)).filter(
        (row) => row.slot === "assistant",
      );
      expect(JSON.stringify(answer?.content)).toContain("The file comes first.");
    }
  });
});

const o3 = (api: RunConfig["api"]): DirectAgentOptions => ({
  config: { api, model: "openai/o3" },
  served: {
    o3: { window: 32_000, maxOutput: 2_000, reasoning: true, input: ["text", "image"] },
    "o4-mini": { window: 32_000, maxOutput: 2_000, reasoning: true, input: ["text", "image"] },
  },
});

it("one model's reasoning is left out for another, and comes back with the first", async () => {
  const script = scriptedModel()
    .answers(thought("The file comes first."), call("read_file", { path: "a.txt" }))
    .calls("read_file", { path: "a.txt" })
    .says("Done.");
  const agent = await start(script, o3("responses"));
  await agent.sandbox.files.write("a.txt", Buffer.from("a"));
  const switchTo = async (model: string) => {
    const [row] = await database.store.db.select().from(sessions).where(eq(sessions.id, agent.id));
    await database.store.db
      .update(sessions)
      .set({ config: { ...(row?.config as RunConfig), ...askedAs(model) } })
      .where(eq(sessions.id, agent.id));
  };
  await agent.step(1);
  await switchTo("openai/o4-mini");
  await agent.step(2);
  await switchTo("openai/o3");
  await agent.step(3);
  const thoughts = agent.model.requests.map(
    (request) => request.items.filter((item) => item.type === "reasoning").length,
  );
  expect(agent.model.requests.map((request) => request.model)).toEqual(["o3", "o4-mini", "o3"]);
  expect(thoughts).toEqual([0, 0, 1]);
});

describe("more images than a request may carry", () => {
  it(
    "gives up the oldest for words, keeps the newest, and leaves all of them stored",
    { tags: ["case-33"], timeout: 180_000 },
    async () => {
      const agent = await start(scriptedModel().says("Quite a lot."), {
        config: { contextWindow: 128_000 },
        served: { "gpt-4o": { window: 128_000, input: ["text", "image"] } },
      });
      const { db } = database.store;
      const images = [];
      for (let seed = 0; seed < 10; seed++) {
        images.push(await saveBlob(db, bigPng(4_000_000, seed), "image/png", `shot-${seed}.png`));
      }
      await agent.step(1, [{ id: "look", parts: images, queuedAt: "2026-11-21T10:00:00.000Z" }]);
      const [asked] = agent.model.requests;
      const users = (asked?.items ?? []).flatMap((item) => (item.type === "message" ? [...item.parts] : []));
      expect(users.slice(-2).map((part) => part.type)).toEqual(["image", "image"]);
      expect(imagesOf(asked)).toHaveLength(2);
      expect(asked?.bytes).toBeLessThan(12 * 1024 * 1024);
      for (let seed = 0; seed < 8; seed++)
        expect(asked && wordsOf(asked)).toContain(
          `[shot-${seed}.png (image/png) is left out to keep the request small`,
        );
      const kept = await db.select({ sha256: blobs.sha256 }).from(blobs);
      for (const image of images) expect(kept.map((blob) => `@blob:${blob.sha256}`)).toContain(image.data);
    },
  );

  it("are not paid for in words twice: a request is the same as the last one but for what is new", async () => {
    const agent = await start(scriptedModel().calls("view_image", { path: "shot.png" }).says("Yes."));
    await agent.sandbox.files.write("shot.png", PICTURE);
    await agent.step(1);
    const view = await loadView(database.store.db, agent.id);
    const [once, twice] = await Promise.all([
      buildMessages(database.store.db, view, ["text", "image"]),
      buildMessages(database.store.db, view, ["text", "image"]),
    ]);
    expect(twice).toEqual(once);
    expect((await resultTexts(database.store, agent.id))[0]).toContain("shot.png (image/png");
  });
});
