/** What people said while the agent worked, on its way into the transcript: one message, in order, nothing twice. */
import { describe, expect, it } from "vitest";
import type { UserPart } from "../../activities/contract/message.ts";
import type { Guidance } from "../../activities/contract/guidance.ts";
import { dropGuidance, enterGuidance, readWaiting } from "../../activities/store/guidance.ts";
import { saveBlob } from "../../activities/store/blobs.ts";
import { guidance, openDirectAgent, type DirectAgent } from "../support/direct-agent.ts";
import { DOT_PNG } from "../support/images.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { transcriptOf } from "../support/stored.ts";
import { useDatabase } from "../support/test-database.ts";
import { wordsAsked } from "../support/scripted-summaries.ts";

const database = useDatabase();

function start(answers = 3): Promise<DirectAgent> {
  const script = scriptedModel();
  for (let step = 1; step <= answers; step++) script.says(`Answer ${step}.`);
  return openDirectAgent(database, script);
}

const text = (value: string): UserPart => ({ type: "text", text: value });
const said = (id: string, at: string, ...parts: UserPart[]): Guidance => ({
  id,
  parts,
  queuedAt: `2026-11-21T10:00:${at}.000Z`,
});
const userRows = async (agent: DirectAgent) =>
  (await transcriptOf(database.store, agent.id)).filter((row) => row.kind === "guidance");

describe("messages that wait", () => {
  it(
    "are one message with texts, images and files in order, each labelled with id and times",
    { tags: ["case-19"] },
    async () => {
      const agent = await start(1);
      const image = await saveBlob(database.store.db, DOT_PNG, "image/png", "dot.png");
      await agent.step(1, [
        said("a", "01", text("like"), image, text("this one")),
        said("b", "02", image),
        said("c", "03", text("and quickly")),
      ]);
      const [row, ...more] = await userRows(agent);
      expect(more).toEqual([]);
      expect(row?.content).toEqual([
        text("[1]: like"),
        image,
        text("this one\n\n[2]:"),
        image,
        text("[3]: and quickly"),
      ]);
      expect(row?.meta).toMatchObject({
        ids: ["a", "b", "c"],
        firstQueuedAt: "2026-11-21T10:00:01.000Z",
        lastQueuedAt: "2026-11-21T10:00:03.000Z",
      });
      const user = agent.model.requests[0]?.items.findLast((item) => item.type === "message");
      expect(user?.type === "message" && user.parts.map((part) => part.type)).toEqual([
        "text",
        "image",
        "text",
        "image",
        "text",
      ]);
    },
  );

  it(
    "enter once by their ids: in a second attempt, another step, stored again",
    { tags: ["case-21", "invariant-6"] },
    async () => {
      const agent = await start(3);
      const [one, two, three] = [
        guidance("use tabs", "a"),
        guidance("no semicolons", "b"),
        guidance("in English", "c"),
      ];
      await agent.step(1, [one]);
      await agent.perform("modelStep", { step: 1 }, { attempt: 2 });
      await agent.say(one, two);
      await agent.say(two);
      await agent.say(three, one);
      await agent.perform("modelStep", { step: 2 });
      await agent.say(two);
      await agent.perform("modelStep", { step: 3 });
      expect((await userRows(agent)).map((row) => [row.step, row.content])).toEqual([
        [1, [text("use tabs")]],
        [2, [text("First: no semicolons\n\nAlso: in English")]],
      ]);
      expect(agent.model.log).toHaveLength(3);
    },
  );

  it("are announced by their beginnings once, masked before they are cut, also if stored apart", async () => {
    const agent = await start(0);
    const long = await saveBlob(
      database.store.db,
      Buffer.from(`Read this first. ${"And on. ".repeat(3_000)}`),
      "text/plain",
      "message.txt",
    );
    const token = `ghp_${"a1B2".repeat(9)}`;
    const messages = [
      said("a", "01", text(`${"Use it. ".repeat(24)}${token}`)),
      { ...said("b", "02", long), by: "ann" },
    ];
    await agent.say(...messages);
    await agent.say(...messages);
    const announced = await agent.dataOf("message:queued");
    expect(announced).toMatchObject([
      { id: "a", position: 1 },
      { id: "b", position: 2, by: "ann", excerpt: expect.stringMatching(/^Read this first\. And on\./) },
    ]);
    expect(JSON.stringify(announced)).not.toContain("ghp_");
  });

  it("a text that came as a blob is words in the transcript: counted, cleaned and found", async () => {
    const agent = await start(2);
    const long = `Rule: quay 7 is closed.\u0000 ${"The harbour master repeats himself. ".repeat(600)}`;
    const blob = await saveBlob(
      database.store.db,
      new TextEncoder().encode(long),
      "text/plain",
      "message.txt",
    );
    await agent.step(1, [said("a", "01", blob), said("b", "02", text("and quickly"))]);
    const [row] = await userRows(agent);
    expect(JSON.stringify(row?.content)).toContain("First: Rule: quay 7 is closed.␀ The harbour");
    expect(row?.tokenCount).toBeGreaterThan(3_000);
    expect(wordsAsked(agent.model, 0)).toContain("Rule: quay 7 is closed.");
    // What is sent and what was estimated are the same size, as far as an estimate goes.
    const [bill] = (
      await database.store.pool.query<{ estimated: number; billed: number }>(
        "select estimated_input as estimated, input_tokens as billed from model_calls where session_id = $1",
        [agent.id],
      )
    ).rows;
    expect(Math.abs((bill?.estimated ?? 0) / (bill?.billed ?? 1) - 1)).toBeLessThan(0.1);
  });
});

describe("a message that its sender stored before it was sent", () => {
  const enter = (agent: DirectAgent, item: Guidance) =>
    database.store.db.transaction((tx) =>
      enterGuidance(tx, { sessionId: agent.id, epoch: 1, step: 0 }, [item], wordsOf(item)),
    );
  const wordsOf = ({ parts }: Guidance) =>
    parts.map((part) => (part.type === "text" ? part.text : "")).join();
  const delivered = async (agent: DirectAgent) =>
    (await userRows(agent)).flatMap((row) => (row.meta as { ids: string[] }).ids);

  it("waits at once, announced once, and has the place that the run gives it", async () => {
    const agent = await start(1);
    const [bare, early, late] = [
      guidance("typed before", "bare"),
      guidance("one", "early"),
      guidance("two", "late"),
    ];
    expect(await enter(agent, early)).toEqual({ position: 1, entry: "new" });
    expect(await enter(agent, late)).toEqual({ position: 2, entry: "new" });
    expect(await enter(agent, early)).toEqual({ position: 1, entry: "sent again" });
    expect((await readWaiting(database.store.db, agent.id)).map(({ text: shown }) => shown)).toEqual([
      "one",
      "two",
    ]);
    await agent.say(bare, early, late);
    await agent.say(late);
    expect(await enter(agent, late)).toEqual({ position: 3, entry: "received" });
    await agent.perform("modelStep", { step: 1 });
    expect(await delivered(agent)).toEqual(["bare", "early", "late"]);
    expect((await agent.dataOf("message:queued")).map(({ id, position }) => [id, position])).toEqual([
      ["early", 1],
      ["late", 2],
      ["bare", 1],
    ]);
    expect(await enter(agent, early)).toBeUndefined();
    expect(await readWaiting(database.store.db, agent.id)).toEqual([]);
  });

  it("is delivered without its signal once that should have come, cleaned as any other", async () => {
    const agent = await start(2);
    await enter(agent, guidance(`use ghp_${"a1B2".repeat(9)}`, "lost"));
    await agent.perform("modelStep", { step: 1 });
    expect(await delivered(agent)).toEqual([]);
    await database.store.pool.query(
      "update guidance set due_at = due_at - interval '31 s' where session_id = $1",
      [agent.id],
    );
    await agent.perform("modelStep", { step: 2 });
    expect(await delivered(agent)).toEqual(["lost"]);
    expect(JSON.stringify(await userRows(agent))).not.toContain("ghp_");
    const again = await agent.perform("storeGuidance", { step: 2, items: [guidance("use tabs", "lost")] });
    expect(again).toEqual({ over: ["lost"] });
  });

  it("is not delivered if it is taken back, whether or not the run has stored it by then", async () => {
    const agent = await start(1);
    const { db } = database.store;
    await enter(agent, guidance("never mind", "sent"));
    expect(await dropGuidance(db, agent.id, "sent")).toBe(true);
    expect(await dropGuidance(db, agent.id, "typed")).toBe(true);
    const items = [
      guidance("never mind", "sent"),
      guidance("nor this", "typed"),
      guidance("but this", "kept"),
    ];
    expect(await agent.perform("storeGuidance", { step: 0, items })).toEqual({ over: ["sent", "typed"] });
    await agent.say(...items);
    await agent.perform("modelStep", { step: 1 });
    expect(await delivered(agent)).toEqual(["kept"]);
    expect(await dropGuidance(db, agent.id, "kept")).toBe(false);
  });
});
