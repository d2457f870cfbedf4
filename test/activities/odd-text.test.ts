/** Text that Postgres, providers or people could not take, and secrets, on their ways through the activities. */
import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import type { AssistantPart, UserPart } from "../../activities/contract/message.ts";
import type { EventData } from "../../activities/store/event.ts";
import { callsOf } from "../../activities/store/transcript.ts";
import { createSessionMemory } from "../../activities/store/transcript-search.ts";
import { saveOutputPart } from "../../activities/store/tool-calls.ts";
import { openDirectAgent, type DirectAgentOptions } from "../support/direct-agent.ts";
import { DOT_PNG } from "../support/images.ts";
import { call, scriptedModel, type ModelScript } from "../support/scripted-model.ts";
import { transcriptOf } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { wordsAsked } from "../support/scripted-summaries.ts";

const database = useDatabase();

const start = (script: ModelScript, options?: DirectAgentOptions) =>
  openDirectAgent(database, script, options);

const AT = "2026-11-21T10:00:00.000Z";
const text = (value: string): UserPart => ({ type: "text", text: value });

it("a tool's name that is cut inside of an emoji is stored whole to the character", async () => {
  const name = `a${"🎈".repeat(130)}`;
  const agent = await start(scriptedModel().answers(call(name, {})).says("There is no such tool."));
  const facts = await agent.step(1);
  expect(facts).toMatchObject({ kind: "answered", calls: [{ name: `a${"🎈".repeat(19)}` }] });
  expect(await agent.step(2)).toMatchObject({ kind: "answered" });
});

it("a call's id that no index takes is replaced by one of ours", async () => {
  const long = randomBytes(20_000).toString("base64url");
  const longest = randomBytes(1_500).toString("base64url");
  const agent = await start(
    scriptedModel()
      .answers(
        call("no_such_tool", {}, { callId: long }),
        call("no_such_tool", {}, { callId: `${long}!` }),
        call("no_such_tool", {}, { callId: longest }),
      )
      .says("There is no such tool."),
  );
  expect(await agent.step(1)).toMatchObject({ kind: "answered", calls: { length: 3 } });
  const ids = (await transcriptOf(database.store, agent.id)).flatMap((row) =>
    row.role === "assistant" ? callsOf(row.content as AssistantPart[]).map((part) => part.toolCallId) : [],
  );
  expect(ids).toEqual(["_s1c0", "_s1c1", longest]);
  expect(await agent.step(2)).toMatchObject({ kind: "answered" });
});

it("ids and names of files with NUL or half a character are stored clean, once", async () => {
  const agent = await start(scriptedModel().says("Heard.").says("Heard."));
  const odd = "a\0b\ud83d";
  const file = {
    type: "file",
    mediaType: `image/${odd}`,
    filename: odd,
    data: DOT_PNG.toString("base64"),
  } as const;
  const message = { id: odd, parts: [text(odd), file], queuedAt: AT };
  await agent.step(1, [message]);
  await agent.step(2, [message]);
  const rows = (await transcriptOf(database.store, agent.id)).filter((row) => row.kind === "guidance");
  expect(rows).toHaveLength(1);
  expect(rows[0]?.content).toEqual([
    text("a␀b\uFFFD"),
    {
      type: "file",
      mediaType: "image/png",
      filename: "a␀b\uFFFD",
      data: expect.stringMatching(/^@blob:/) as string,
      width: 1,
      height: 1,
    },
  ]);
});

it("files inside a message are taken as what they are, or words say why they were left out", async () => {
  const agent = await start(scriptedModel().says("Seen."));
  const file = (mediaType: string, data: string) => ({ type: "file", mediaType, data }) as const;
  const parts = [
    text("look"),
    file("image/*", `data:image/png;base64,${DOT_PNG.toString("base64")}`),
    { ...file("text/markdown", Buffer.from("notes").toString("base64")), filename: "todo.md" },
    file("image/png", Buffer.from("no picture").toString("base64")),
    file("image/png", "https://example.org/a.png"),
    file("image/png", "@blob:00"),
    file("image/png", "???"),
  ];
  await agent.step(1, [{ id: "files", parts, queuedAt: AT }]);
  const [request] = agent.model.requests;
  const user = request?.items.findLast((item) => item.type === "message" && item.role === "user");
  const kinds = user?.type === "message" ? user.parts.map((part) => part.type) : [];
  expect(kinds).toEqual(["text", "image", "text", "text", "text", "text", "text"]);
  const words = wordsAsked(agent.model, 0);
  for (const said of [
    "todo.md",
    "notes",
    "not a PNG",
    "links are not fetched",
    "names a stored file",
    "is not base64",
  ])
    expect(words).toContain(said);
});

it("a message of any sender is announced as queued, once, before it is announced as taken", async () => {
  const agent = await start(scriptedModel().says("Heard.").says("Heard."));
  const parts = [text("use  tabs\nplease")];
  await agent.step(1, [{ id: "web", parts, queuedAt: AT }]);
  await agent.step(2, [
    { id: "web", parts, queuedAt: AT },
    { id: "more", parts, queuedAt: AT },
  ]);
  expect((await agent.events()).filter((type) => type.startsWith("message:"))).toEqual([
    "message:queued",
    "message:dequeued",
    "message:queued",
    "message:dequeued",
  ]);
  expect(await agent.dataOf("message:queued")).toEqual([
    { id: "web", position: 1, excerpt: "use tabs please" },
    { id: "more", position: 1, excerpt: "use tabs please" },
  ] satisfies EventData["message:queued"][]);
});

it("pages of a stored output part no character and lose none, wherever its pieces begin", async () => {
  const agent = await start(scriptedModel().says("Hello."));
  const { db } = database.store;
  const pieces = ["a😀", "é😀😀", "b"];
  let offset = 0;
  for (const [part, piece] of pieces.entries()) {
    await saveOutputPart(db, { sessionId: agent.id, handle: "s1c0", part, offset, content: piece });
    offset += piece.length;
  }
  const memory = createSessionMemory(db, agent.id);
  for (const limit of [1, 2, 3, 4, 50]) {
    let read = "";
    for (let at = 0; at < offset;) {
      const page = await memory.readOutput("s1c0", at, limit);
      read += page?.text ?? "";
      expect(page?.end).toBeGreaterThan(at);
      at = page?.end ?? offset;
    }
    expect(read).toBe(pieces.join(""));
  }
});
