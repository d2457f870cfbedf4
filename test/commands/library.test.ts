import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import type { Event, Longhaul } from "../../client/library/index.ts";
import { connect } from "../../client/library/index.ts";
import { bigPng } from "../support/images.ts";
import {
  begin,
  emptyFolder,
  inThisProcess,
  longhaul,
  untilRunning,
  untilStatus,
} from "../support/commands/longhaul.ts";

async function connected(): Promise<Longhaul> {
  const environment = inject("commandsEnvironment");
  const client = await connect({
    databaseUrl: environment["DATABASE_URL"] ?? "",
    temporalAddress: environment["TEMPORAL_ADDRESS"] ?? "",
    taskQueue: environment["LONGHAUL_TASK_QUEUE"] ?? "",
    model: "gpt-4o",
  });
  onTestFinished(() => client.close());
  return client;
}

async function all(events: AsyncGenerator<Event, unknown>): Promise<Event[]> {
  const seen: Event[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

test("starts, asks, answers, follows to the end, and resumes events where it left off", async () => {
  const client = await connected();
  const { id } = await client.start('ask: {"question":"npm or pnpm?","options":["npm","pnpm"]}\nsay: Done.');
  const first: Event[] = [];
  for await (const event of client.events(id)) {
    first.push(event);
    if (event.type !== "question:asked") continue;
    expect(event.data.text).toBe("npm or pnpm?");
    break;
  }
  expect(await client.questions(id)).toMatchObject([{ session: id, kind: "ask", status: "open" }]);
  expect(await client.answer(id, { option: 2 })).toMatchObject({ session: id, acknowledged: true });
  const rest = await all(client.events(id, { from: first.at(-1)?.seq ?? 0 }));
  const seqs = [...first, ...rest].map(({ seq }) => seq);
  expect(seqs).toEqual([...new Set(seqs)].toSorted((a, b) => a - b));
  expect(rest.at(-1)).toMatchObject({ type: "session:ended", data: { status: "completed", text: "Done." } });

  expect(await client.status(id)).toMatchObject({ id, status: "completed", result: "Done." });
  // Other files start sessions on the same stack meanwhile.
  expect(await client.list({ limit: 1 })).toHaveLength(1);
  expect((await client.list({ limit: 50 })).map((session) => session.id)).toContain(id);
  expect(await client.export(id)).toMatchObject({ format: "longhaul", session: { id } });
  await expect(client.answer(id, { option: 1 })).rejects.toMatchObject({ exitCode: 5 });
  await expect(client.status("no-such-session")).rejects.toMatchObject({ name: "ClientError", exitCode: 5 });
  await expect(client.start("  ")).rejects.toMatchObject({ exitCode: 2 });
});

test("starts a batch from a file, lists it, and cancels one; runs and deletes a schedule", async () => {
  const client = await connected();
  const name = `library-${randomBytes(3).toString("hex")}`;
  const file = join(emptyFolder(), "tasks.jsonl");
  writeFileSync(
    file,
    '{"id": "a", "task": "run: sleep 300\\nsay: Over."}\n{"id": "b", "task": "say: Never."}\n',
  );
  const options = { name, concurrency: 1 };
  expect(await client.batches.start(file, options)).toEqual({
    name,
    attached: false,
    begun: 2,
    completed: 0,
  });
  expect(await client.batches.start(file, options)).toMatchObject({ attached: true });
  const running = (await client.batches.list()).find((batch) => batch.name === name);
  expect(running).toMatchObject({ status: "running", total: 2, completed: 0, concurrency: 1 });
  await untilStatus(`${name}-a`, ({ step }) => step === 1);
  expect((await client.batches.cancel(name)).status).toBe("cancelled");
  expect((await client.batches.get(name)).items.map(({ status }) => status)).toEqual([
    "cancelled",
    "pending",
  ]);
  await expect(client.batches.get("no-such-batch")).rejects.toMatchObject({ exitCode: 5 });
  await expect(client.batches.start(file, { ...options, concurrency: 0 })).rejects.toMatchObject({
    exitCode: 2,
  });

  const made = await longhaul(["schedule", "create", name, "--cron", "0 6 1 1 *", "--", "say: Done."]);
  expect(made.code, made.err).toBe(0);
  await client.schedules.pause(name);
  const ofName = async () => (await client.schedules.list()).find((schedule) => schedule.name === name);
  expect(await ofName()).toMatchObject({ state: "paused", last: null });
  await client.schedules.resume(name);
  const ran = await client.schedules.run(name);
  expect(ran.kind).toBe("started");
  expect(await ofName()).toMatchObject({ state: "active", last: ran.kind === "started" ? ran.id : "" });
  await client.schedules.delete(name);
  expect(await ofName()).toBeUndefined();
});

test("a picture far larger than a signal is stored, shown, and only named in the history", async () => {
  const client = await connected();
  const id = await begin("run: sleep 100\nsay: Not heard.");
  await untilStatus(id, ({ step }) => step === 1);
  const bytes = bigPng(300_000, 7);
  await client.say(id, "say: Seen.", { images: [{ name: "large.png", bytes }] });
  await client.interrupt(id);
  await untilStatus(id, ({ status }) => status === "completed");
  const { messages } = (await client.export(id)) as {
    readonly messages: readonly { readonly content: unknown }[];
  };
  expect(JSON.stringify(messages)).toContain("large.png");
  const { events } = await inThisProcess(async (services) =>
    (await services.temporal.client()).workflow.getHandle(id).fetchHistory(),
  );
  expect(JSON.stringify(events).length).toBeLessThan(200_000);
  expect(JSON.stringify(events)).not.toContain(bytes.subarray(200, 260).toString("base64"));
  const wrong = client.say(id, "Look.", { images: [{ name: "no.png", bytes: Buffer.from("no image") }] });
  await expect(wrong).rejects.toMatchObject({ exitCode: 2 });
});

test("compacts, shows the context, undoes, retries and forks as the commands do", async () => {
  const client = await connected();
  const fill = Array.from({ length: 12 }, (_, at) => `run: seq ${at * 1_000} ${at * 1_000 + 900}`);
  const id = await begin(`${fill.join("\n")}\nrun: sleep 100\nsay: Done.`);
  await untilRunning(id, 13);
  await expect(client.compact(id, { focus: "x".repeat(2_001) })).rejects.toMatchObject({ exitCode: 2 });
  await client.compact(id, { focus: "the numbers" });
  await client.interrupt(id);
  await untilStatus(id, ({ compactionRounds }) => compactionRounds === 1);
  const [full, { code, out }] = [await client.context(id), await longhaul(["context", id, "--json"])];
  expect(code).toBe(0);
  expect(full).toMatchObject({ id, messages: { summaries: 1 }, budget: JSON.parse(out).budget });
  await client.cancel(id);
  expect(await client.undoCompaction(id)).toMatchObject({ undone: true, round: 1 });
  expect((await client.context(id)).messages.summaries).toBe(0);
  await expect(client.undoCompaction(id)).rejects.toMatchObject({ exitCode: 5 });

  for (const fromStep of [0, 1.5, Number.NaN, 99])
    await expect(client.retry(id, { fromStep })).rejects.toMatchObject({ exitCode: 2 });
  expect(await client.retry(id, { fromStep: 2 })).toMatchObject({ step: 2, epoch: 2 });
  await client.cancel(id);
  const fork = await client.fork(id, { fromStep: 2, message: "say: Elsewhere." });
  expect(fork.id).not.toBe(id);
  const ended = await untilStatus(fork.id, ({ status }) => status === "completed");
  expect(ended.result).toBe("Elsewhere.");
  await expect(client.fork(id, { id: fork.id })).rejects.toMatchObject({ exitCode: 5 });
  await expect(client.fork(id, { id: "no id" })).rejects.toMatchObject({ exitCode: 2 });
});

test("a command's standard output and standard error are apart for programs, also in a fork", async () => {
  const client = await connected();
  const { id } = await client.start("run: echo to out; echo to err >&2; exit 3\nsay: Done.");
  const [result] = (await all(client.events(id))).flatMap((event) =>
    event.type === "llm:tool-result" ? [event.data] : [],
  );
  const call = result?.callId ?? "";
  const kept = { name: "bash", status: "completed", exitCode: 3, stdout: "to out", stderr: "to err" };
  expect(await client.callResult(id, call)).toMatchObject({ ...kept, truncated: false });
  expect((await client.callResult(id, call)).text).toMatch(/\n\[exit code 3\]$/);
  const { toolCalls } = (await client.export(id)) as { readonly toolCalls: readonly object[] };
  expect(toolCalls).toMatchObject([kept]);
  const fork = await client.fork(id, { message: "say: Elsewhere." });
  expect(await client.callResult(fork.id, call)).toMatchObject(kept);
  await client.cancel(fork.id);
  await expect(client.callResult(id, "no-such-call")).rejects.toMatchObject({ exitCode: 5 });
});

test("text files go with a task and with a message, under their names", async () => {
  const client = await connected();
  const notes = { name: "notes.md", bytes: Buffer.from("Use tabs.\n") };
  const { id } = await client.start("run: sleep 100\nsay: Not heard.", { files: [notes] });
  await untilRunning(id, 1);
  const folder = emptyFolder();
  writeFileSync(join(folder, "log.txt"), "first line\nlast line\n");
  const said = await longhaul(["say", id, "say: Read.", "--file", join(folder, "log.txt")]);
  expect(said.code, said.err).toBe(0);
  expect((await client.status(id)).queue).toMatchObject([{ text: expect.stringContaining("say: Read.") }]);
  await client.interrupt(id);
  await untilStatus(id, ({ status }) => status === "completed");
  const { messages } = (await client.export(id)) as {
    readonly messages: readonly { readonly kind: string; readonly content: unknown }[];
  };
  const contentOf = (kind: string) => messages.find((message) => message.kind === kind)?.content;
  expect(contentOf("task")).toMatchObject([
    { type: "text" },
    { type: "text", text: '<file name="notes.md">\nUse tabs.\n</file>' },
  ]);
  expect(contentOf("guidance")).toMatchObject([
    { type: "text", text: "say: Read." },
    { type: "text", text: '<file name="log.txt">\nfirst line\nlast line\n</file>' },
  ]);
  writeFileSync(join(folder, "program"), Buffer.from([0, 1, 2]));
  expect((await longhaul(["say", id, "Look.", "--file", join(folder, "program")])).code).toBe(2);
  const long = { name: "long.txt", bytes: Buffer.alloc(1_048_577, "a") };
  await expect(client.say(id, "Look.", { files: [long] })).rejects.toMatchObject({ exitCode: 2 });
});

test("clears the queue: from a program, and with unsay --all", async () => {
  const client = await connected();
  const id = await begin("run: sleep 100\nsay: Done.");
  await untilRunning(id, 1);
  const say = (name: string) => client.say(id, `say: ${name}`, { id: name });
  await say("one");
  await say("two");
  expect(await client.unsayAll(id)).toEqual(["one", "two"]);
  expect(await client.unsayAll(id)).toEqual([]);
  await say("three");
  await say("four");
  const { code, out } = await longhaul(["unsay", id, "--all", "--json"]);
  expect({ code, ...JSON.parse(out) }).toEqual({ code: 0, id, withdrawn: ["three", "four"] });
  expect((await client.status(id)).queue).toEqual([]);
  expect((await longhaul(["unsay", id])).code).toBe(2);
  expect((await longhaul(["unsay", id, "1", "--all"])).code).toBe(2);
  await client.interrupt(id, "say: Heard.");
  expect((await untilStatus(id, ({ status }) => status === "completed")).result).toBe("Heard.");
});

test("many followers share a connection", async () => {
  const client = await connected();
  const id = await begin("run: sleep 100\nsay: Not heard.");
  const followers = Array.from({ length: 12 }, () => client.events(id));
  const firsts = await Promise.all(followers.map((events) => events.next()));
  expect(firsts.map(({ done, value }) => (done === true ? undefined : value.seq))).toEqual(
    firsts.map(() => 1),
  );
  // The pool has four connections: with one for each follower nothing else would be answered.
  expect((await client.status(id)).id).toBe(id);
  const waiting = followers.map((events) => all(events));
  await client.cancel(id);
  const ends = await Promise.all(waiting);
  expect(ends.map((events) => events.at(-1)?.type)).toEqual(ends.map(() => "session:ended"));
});
