/** Tasks that the agent gives to other sessions: their results and ends. */
import { describe, expect, it } from "vitest";
import { eq, sql } from "drizzle-orm";
import { runs, sessions } from "../../activities/store/schema/index.ts";
import type { SessionEvent } from "../../activities/store/event.ts";
import { listQuestions } from "../../activities/store/questions.ts";
import { listSessions } from "../../activities/store/reading.ts";
import { readWorkspace } from "../../activities/store/checkpoints.ts";
import { copySessionLine } from "../../activities/store/fork.ts";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { findByReference } from "../../client/lookup/find-by-reference.ts";
import { sendAnswer } from "../../client/sessions/send-answer.ts";
import { readStatus } from "../../client/sessions/session-status.ts";
import { watchSession } from "../../client/watch/watch-session.ts";
import { useAgent } from "../support/agent-harness.ts";
import { bySession } from "../support/by-session.ts";
import { clientServices, quietOutput, sessionRow } from "../support/client-services.ts";
import { checkFamily, delegating, delegationsOf, mostAtOnce } from "../support/delegating.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { call, scriptedModel, text } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { untilCalls } from "../support/waits.ts";
import { touch } from "../support/in-container.ts";
import { file } from "../support/workspace-file.ts";

const agent = useAgent();

const rowOf = async (id: string) =>
  (await agent.database.store.db.select().from(sessions).where(eq(sessions.id, id)))[0];
const statusOf = async (id: string) => (await agent.client.workflow.getHandle(id).describe()).status.name;
const untilCallRuns = (id: string) => untilCalls(agent.database.store, id, "running");
const delegateCall = (task: string, more: object = {}) => call("delegate", { task, ...more });
const SLEEP = [call("bash", { command: "sleep 60" })];

describe("a delegate", () => {
  it("works on the call's files; its changes are merged, and its parent continues as new", async () => {
    const script = scriptedModel()
      .calls("write_file", { path: "later.txt", content: "of the parent" })
      .calls("delegate", { task: "Change both files.", access: "write" })
      // The delegate's.
      .calls("bash", { command: "cat later.txt && echo new > a.txt && rm b.txt && mkdir c" })
      .calls("bash", { command: "echo x > c/d.txt; chmod +x c/d.txt" })
      .says("Both are changed.")
      .calls("bash", { command: "cat a.txt c/d.txt later.txt; ls; test -x c/d.txt && echo executable" })
      .says("Done.");
    const workspace = await packWorkspace([file("a.txt", "old"), file("b.txt", "old")]);
    const config = delegating({}, { maxHistoryEvents: 50 });
    const session = await agent.start(script, { config, workspace });
    expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
    const child = `${session.id}.s2c0`;
    expect(await rowOf(child)).toMatchObject({
      parentId: session.id,
      parentCall: "s2c0",
      status: "completed",
    });
    const texts = await resultTexts(agent.database.store, session.id);
    expect(texts[1]).toContain("Both are changed.");
    expect(texts[1]).toContain("Files applied (3): a.txt, b.txt, c/d.txt");
    expect(texts[2]).toBe("new\nx\nof the parenta.txt\nc\nlater.txt\nexecutable");
    expect((await session.until("delegate:ended")).data).toMatchObject({
      childId: child,
      status: "completed",
    });
    const took = await agent.database.store.db.select().from(runs).where(eq(runs.sessionId, session.id));
    expect(took.length).toBeGreaterThan(1);

    const services = clientServices(agent);
    const { db } = agent.database.store;
    const fork = agent.adopt(`fork-of-${session.id}`, session).id;
    await copySessionLine(agent.database.store, { from: child, to: fork, beforeStep: 2 });
    const forked = await readWorkspace(db, fork);
    expect(forked?.map(({ path }) => path)).toEqual(["a.txt", "c", "later.txt"]);
    const listed = async (options: object) =>
      (await listSessions(db, { limit: 100, ...options })).map(({ id }) => id);
    expect(await listed({})).not.toContain(child);
    expect(await listed({ all: true })).toEqual(expect.arrayContaining([child, session.id]));
    expect(await listed({ parent: session.id })).toEqual([child]);
    expect((await findByReference(db, session.id.slice(0, -1))).id).toBe(session.id);
    expect((await findByReference(db, `${session.id}.`)).id).toBe(child);
    expect(await readStatus(services, await sessionRow(agent, session.id))).toMatchObject({
      parent: null,
      children: [{ id: child, status: "completed", step: 3, about: "Change both files." }],
    });
    expect(await readStatus(services, await sessionRow(agent, child))).toMatchObject({
      parent: { id: session.id, call: "s2c0" },
      children: [],
    });
    const [events, lines]: [SessionEvent[], string[]] = [[], []];
    const output = {
      ...quietOutput([]),
      json: (value: unknown) => void events.push(value as SessionEvent),
      show: (line: string) => void lines.push(line),
    };
    const watched = { services, sessionId: session.id, afterSeq: 0, children: true, output };
    await watchSession({ ...watched, json: true });
    expect(events.filter(({ sessionId }) => sessionId === child).at(-1)).toMatchObject({
      type: "session:ended",
    });
    expect(events.at(-1)).toMatchObject({ type: "session:ended", sessionId: session.id });
    await watchSession({ ...watched, json: false });
    expect(lines.join("")).toMatch(/^s2c0 │ .*mkdir c/m);
    expect(lines.join("")).toContain("3 files applied");
    await checkFamily(agent, session);
  });

  it("changes other lines of a file than another one: both are in it, and the same line is left", async () => {
    const lines = ["one", "two", "three", "four", "five", "six", "seven"].map((line) => `${line}\n`).join("");
    const edit = (script: string) => [call("bash", { command: `sed -i '${script}' same.txt` })];
    const session = await agent.run(
      bySession({
        "": [
          ["one", "seven", "one again"].map((task) => delegateCall(`Change ${task}.`, { access: "write" })),
          [call("bash", { command: "cat same.txt; ls -A" })],
          [text("Done.")],
        ],
        ".s1c0": [edit("s/one/ONE/"), [text("Answer 0.")]],
        ".s1c1": [edit("s/seven/SEVEN/"), [text("Answer 1.")]],
        ".s1c2": [edit("s/one/Uno/"), [text("Answer 2.")]],
      }),
      { config: delegating({}), workspace: await packWorkspace([file("same.txt", lines)]) },
    );
    const texts = await resultTexts(agent.database.store, session.id);
    expect(texts[1]).toContain("Of these, merged with what was changed here meanwhile: same.txt");
    expect(texts[2]).toContain("- same.txt: it was changed here meanwhile, in the same lines");
    expect(texts[3]).toBe("ONE\ntwo\nthree\nfour\nfive\nsix\nSEVEN\nsame.txt");
    const ended = await session.dataOf("delegate:ended");
    expect(ended.map(({ merged }) => merged)).toEqual([undefined, ["same.txt"], undefined]);
    await checkFamily(agent, session);
  });

  it("waits for its place, and files are merged in the order of the calls", { tags: ["D6"] }, async () => {
    const tasks = [0, 1, 2, 3, 4, 5].map((n) => delegateCall(`Task ${n}.`, n < 2 ? { access: "write" } : {}));
    const write = (n: number) => [call("write_file", { path: "same.txt", content: `of ${n}` })];
    const session = await agent.run(
      bySession({
        "": [tasks, [call("bash", { command: "cat same.txt" })], [text("Done.")]],
        ".s1c0": [[call("bash", { command: "sleep 2" })], write(0), [text("Answer 0.")]],
        ".s1c1": [write(1), [text("Answer 1.")]],
        ".s1c2": [write(2), [text("Answer 2.")]],
        ".s1c3": [[text("Answer 3.")]],
        ".s1c4": [[text("Answer 4.")]],
        ".s1c5": [[text("Answer 5.")]],
      }),
      { config: delegating({ maxConcurrent: 2 }) },
    );
    expect(await mostAtOnce(session.handle)).toBe(2);
    const texts = await resultTexts(agent.database.store, session.id);
    expect(texts.slice(0, 6).map((text) => /Answer \d/.exec(text)?.[0])).toEqual(
      [0, 1, 2, 3, 4, 5].map((n) => `Answer ${n}`),
    );
    expect(texts[0]).toContain("Files applied (1): same.txt");
    expect(texts[1]).toContain("- same.txt: a file of that name was made here meanwhile");
    expect(texts[1]).toContain("read_output s1c1");
    expect(texts[6]).toBe("of 0");
    const kept = (await delegationsOf(agent.database.store, session.id)).map(({ status }) => status);
    expect(kept.slice(0, 3)).toEqual(["applied", "partly", "applied"]);
  });

  it(
    "asks its parent's person, and ends with its parent's step and run",
    { tags: ["D1", "D7"] },
    async () => {
      const session = await agent.start(
        bySession({
          "": [[delegateCall("Sleep.")], [delegateCall("Sleep again.")]],
          ".s1c0": [[call("ask_user", { question: "npm or pnpm?" })], SLEEP],
          ".s2c0": [SLEEP],
        }),
        { config: delegating() },
      );
      const [services, { db }] = [clientServices(agent), agent.database.store];
      await eventually("it asks", async () => (await listQuestions(db, { of: session.id })).length > 0);
      await eventually(
        "it waits",
        async () => (await listSessions(db, { limit: 9, status: "waiting" })).length > 0,
      );
      expect(await sendAnswer(services, session.id, { text: "take deno" })).toEqual({
        session: `${session.id}.s1c0`,
        question: "s1c0",
        acknowledged: true,
      });
      await untilCallRuns(`${session.id}.s1c0`);
      expect((await resultTexts(agent.database.store, `${session.id}.s1c0`))[0]).toContain("take deno");
      await session.handle.signal("interrupt");
      await untilCallRuns(`${session.id}.s2c0`);
      expect(await statusOf(`${session.id}.s1c0`)).toBe("CANCELLED");
      const [interrupted] = await resultTexts(agent.database.store, session.id);
      expect(interrupted).toContain("was cancelled, since the user interrupted this step; 2 steps");
      const begun = performance.now();
      await session.handle.cancel();
      await expect(session.result()).rejects.toThrow();
      const tookMs = performance.now() - begun;
      expect(await statusOf(`${session.id}.s2c0`)).toBe("CANCELLED");
      expect(await rowOf(`${session.id}.s2c0`)).toMatchObject({ status: "cancelled" });
      const sandboxes = await agent.deps.sandboxHost.sessions();
      expect(sandboxes.filter((id) => id.startsWith(session.id))).toEqual([]);
      expect(tookMs).toBeLessThan(5_000);
      // The parent never saw the question.
      const own = session.model.requests.filter(({ cacheKey }) => cacheKey === session.id);
      expect(JSON.stringify(own)).not.toContain("take deno");
    },
  );

  it(
    "continues at its step after its worker was killed, and repeats no request",
    { tags: ["D3"] },
    async () => {
      const script = scriptedModel()
        .calls("delegate", { task: "Wait for the file." })
        .calls("bash", { command: "until [ -e go ]; do sleep 0.1; done; echo went on" })
        .says("It was there.")
        .says("Done.");
      const session = await startKillableSession(agent.database, script, { config: delegating() });
      const child = `${session.id}.s1c0`;
      const worker = await session.startWorker();
      await untilCallRuns(child);
      await worker.kill();
      await session.startWorker();
      await touch(agent.docker.getContainer(`longhaul-${child}`), "/workspace/go");
      expect(await session.handle.result()).toMatchObject({ status: "completed", result: "Done." });
      expect((await resultTexts(agent.database.store, child)).map((result) => result.split("\n")[0])).toEqual(
        ["went on"],
      );
      const results = await resultTexts(agent.database.store, session.id);
      expect(results).toHaveLength(1);
      expect(results[0]).toContain("It was there.");
      expect(session.model.requests).toHaveLength(4);
    },
  );
});

it("a session with the id of a delegate is neither run nor merged", async () => {
  const { db } = agent.database.store;
  const gate = Promise.withResolvers<void>();
  const script = scriptedModel()
    .replies(async () => {
      await gate.promise;
      return { parts: [delegateCall("Change both files.", { access: "write" })] };
    })
    .says("Done.");
  const session = await agent.start(script, { config: delegating() });
  const child = `${session.id}.s1c0`;
  await db.transaction(async (tx) => {
    await tx.execute(sql`set local session_replication_role = replica`);
    await tx.execute(sql`insert into sessions (id, task, config, owner)
      select ${child}, 'Change both files.', config, 'alice' from sessions where id = ${session.id}`);
  });
  const before = await rowOf(child);
  gate.resolve();
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
  expect((await resultTexts(agent.database.store, session.id))[0]).toContain("belongs to another session");
  expect(await rowOf(child)).toEqual(before);
  expect(await delegationsOf(agent.database.store, session.id)).toEqual([]);
});
