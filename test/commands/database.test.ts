/** Clients with their own Postgres role: they see their owner's sessions, and none of the operator's tables. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeAll, afterAll, expect, inject, test } from "vitest";
import { emptyFolder, longhaul, untilStatus } from "../support/commands/longhaul.ts";
import { onServer } from "../support/services.ts";

const RUN = randomBytes(3).toString("hex");
const operator = inject("commandsEnvironment")["DATABASE_URL"] ?? "";
const names = { alice: `alice-${RUN}`, bob: `bob-${RUN}` };
const urls = { alice: "", bob: "" };
type Person = keyof typeof names;

beforeAll(async () => {
  for (const person of ["alice", "bob"] as const) {
    const made = await longhaul(["database", "client", names[person]], { cwd: tmpdir() });
    expect(made, made.err).toMatchObject({ code: 0 });
    urls[person] = made.out.trim();
  }
});
afterAll(async () => {
  for (const person of ["alice", "bob"] as const)
    await longhaul(["database", "client", names[person], "--revoke"], { cwd: tmpdir() });
});

const as = (person: Person, more: Readonly<Record<string, string>> = {}) => ({
  environment: { DATABASE_URL: urls[person], ...more },
});

/** In Postgres itself, without the program's checks. */
const sql = <Row extends Record<string, unknown>>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
) => onServer(url, async (client) => (await client.query<Row>(text, [...values])).rows);
const refusal = (person: Person, text: string, values?: readonly unknown[]) =>
  sql(urls[person], text, values).then(
    () => "done",
    (error: { code?: string }) => error.code,
  );

async function sessionOf(person: Person, folder = emptyFolder()): Promise<string> {
  writeFileSync(join(folder, "mine.txt"), `${person}'s\n`);
  const task = "run: echo more >> mine.txt; seq 60000\nsay: Done.";
  const started = await longhaul(["start", task, "--workspace", folder], as(person));
  expect(started, started.err).toMatchObject({ code: 0 });
  const id = started.out.trim();
  expect((await untilStatus(id, ({ endedAt }) => endedAt !== null)).owner).toBe(names[person]);
  return id;
}

test("a person's own sessions are started, guided, read, exported, forked and retried as ever", async () => {
  const id = await sessionOf("alice");
  // Long texts and files are stored as blobs; the second time the blobs exist already.
  const image = join(emptyFolder(), "dot.png");
  writeFileSync(image, Buffer.from(PNG, "base64"));
  for (const time of ["first", "second"]) {
    const said = await longhaul(
      ["say", id, `say: ${time}\n${"long ".repeat(5_000)}`, "--image", image],
      as("alice"),
    );
    expect(said, said.err).toMatchObject({ code: 0 });
    await untilStatus(id, ({ endedAt, result }) => endedAt !== null && result?.includes(time) === true);
  }
  for (const words of [
    ["list", "--json"],
    ["status", id],
    ["context", id],
    ["messages", id],
    ["queue", id],
    ["diff", id],
  ])
    expect(await longhaul(words, as("alice")), words[0]).toMatchObject({ code: 0 });
  expect((await longhaul(["list", "--json", "--all"], as("alice"))).out).toContain(id);
  expect((await longhaul(["watch", id], as("alice"))).code).toBe(0);
  expect(JSON.parse((await longhaul(["export", id], as("alice"))).out)).toMatchObject({ session: { id } });
  const cwd = emptyFolder();
  expect((await longhaul(["pull", id, "out"], { ...as("alice"), cwd })).code).toBe(0);
  expect(readFileSync(join(cwd, "out", "mine.txt"), "utf8")).toBe("alice's\nmore\n");
  expect((await longhaul(["report", id, "report.html"], { ...as("alice"), cwd })).code).toBe(0);
  expect(readFileSync(join(cwd, "report.html"), "utf8")).toContain("data:image/png;base64");
  const fork = await longhaul(["fork", id, "--from-step", "2", "--detach"], as("alice"));
  expect(fork, fork.err).toMatchObject({ code: 0 });
  await untilStatus(fork.out.trim(), ({ endedAt, owner }) => endedAt !== null && owner === names.alice);
  const retried = await longhaul(["retry", id, "--from-step", "2", "--detach"], as("alice"));
  expect(retried, retried.err).toMatchObject({ code: 0 });
  await untilStatus(id, ({ endedAt, epoch }) => endedAt !== null && epoch === 2);
});

test("no row of another person's is visible or can be changed, in any table", async () => {
  const id = await sessionOf("alice");
  const own = await sessionOf("bob");
  const tables = await sql<{ name: string; ofSession: boolean; isClosed: boolean }>(
    operator,
    `select c.relname as name, relrowsecurity and not relforcerowsecurity as "isClosed", exists (
        select from pg_attribute a where a.attrelid = c.oid and a.attname = 'session_id') as "ofSession"
      from pg_class c where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'longhaul_migrations'`,
  );
  expect(tables.filter(({ isClosed }) => !isClosed)).toEqual([]);
  let withRows = 0;
  // The operator's tables are closed entirely, see below.
  const closed = [
    "blobs",
    "workers",
    "mcp_credentials",
    "rate_windows",
    "open_requests",
    "budget_warnings",
    "budget_reservations",
  ];
  for (const { name } of tables.filter((table) => table.ofSession && !closed.includes(table.name))) {
    const there = await sql(operator, `select from ${name} where session_id = $1`, [id]);
    withRows += there.length > 0 ? 1 : 0;
    expect(await sql(urls.bob, `select from ${name} where session_id = $1`, [id]), name).toEqual([]);
  }
  expect(withRows).toBeGreaterThan(8);
  expect(await sql(urls.bob, "select from messages where session_id = $1", [id])).toEqual([]);
  expect(await sql(urls.bob, "select owner from sessions group by owner")).toEqual([{ owner: names.bob }]);
  for (const name of closed) expect(await refusal("bob", `select from ${name}`), name).toBe(DENIED);

  for (const words of [
    ["status", id],
    ["say", id, "say: Mine?"],
    ["pull", id, "out"],
    ["export", id],
  ])
    expect(await longhaul(words, as("bob")), words[0]).toMatchObject({ code: 5 });
  const taken = await longhaul(["start", "say: Other.", "--id", id], as("bob"));
  expect(taken).toMatchObject({ code: 5 });
  expect(taken.err).toContain("another person's session");

  expect(
    await refusal(
      "bob",
      "insert into events (session_id, seq, epoch, step, attempt, type, data) values ($1, 1000, 1, 1, 1, 'x', '{}')",
      [id],
    ),
  ).toBe(DENIED);
  expect(await refusal("bob", "update sessions set config = '{}', id = $1", [id])).toBe(DENIED);
  expect(
    await sql(urls.bob, "update stored_messages set token_count = 0 where session_id = $1 returning 1", [id]),
  ).toEqual([]);
  expect(await refusal("bob", "update sessions set owner = $1 where id = $2", [names.alice, own])).toBe(
    DENIED,
  );
  // What a worker would read for Bob.
  const [save] = await sql<{ id: string }>(operator, "select id from checkpoints where session_id = $1", [
    id,
  ]);
  const onTop =
    "insert into checkpoints (session_id, epoch, step, parent_id, manifest, pack) values ($1, 1, 99, $2, '', '')";
  expect(await refusal("bob", onTop, [own, save?.id])).toBe(DENIED);
  const asChild =
    "insert into delegations (session_id, epoch, step, call_index, child_id, access) values ($1, 1, 99, 0, $2, 'read')";
  expect(await refusal("bob", asChild, [own, id])).toBe(DENIED);
  expect(
    await refusal(
      "bob",
      "insert into sessions (id, task, config, owner, container) values ($1, '', '{}', $2, 'box')",
      [`x-${RUN}`, names.bob],
    ),
  ).toBe(DENIED);
});

test("the tables cannot be altered, and the operator's commands are refused with a reason", async () => {
  const id = await sessionOf("bob");
  for (const text of [
    "alter table sessions add column x int",
    "alter table sessions disable row level security",
    "drop policy longhaul_client on sessions",
    "drop table events",
    "truncate stored_messages",
    "create table mine (id int)",
    "create schema mine",
    "delete from sessions",
    "set role postgres",
    "update client_roles set owner = 'x'",
  ])
    expect(await refusal("bob", text), text).toBe(DENIED);
  const deleted = await longhaul(["delete", id, "--yes"], as("bob"));
  expect(deleted).toMatchObject({ code: 5 });
  expect(deleted.err).toContain("Your role in Postgres may not do that");
  const named = await longhaul(["list"], as("bob", { LONGHAUL_USER: names.alice }));
  expect(named).toMatchObject({ code: 2 });
  expect(named.err).toContain("Unset LONGHAUL_USER");
  expect(await longhaul(["database", "client", `eve-${RUN}`], as("bob"))).toMatchObject({ code: 5 });
});

test("a client learns which installation this is, as its runs say, and cannot change it", async () => {
  const ask = "select longhaul_installation() as id";
  const [[ours], [theirs]] = [
    await sql<{ id: string }>(operator, ask),
    await sql<{ id: string }>(urls.bob, ask),
  ];
  expect(theirs).toEqual(ours);
  expect(ours?.id).toMatch(/^[0-9a-f-]{36}$/);
  expect(await refusal("bob", "update installation set id = 'mine'")).toBe(DENIED);
  expect(await refusal("bob", "insert into installation (id) values ('mine')")).toBe(DENIED);
});

test("files are kept for one's own sessions and free ids, not for another person's", async () => {
  const [own, id] = [await sessionOf("bob"), await sessionOf("alice")];
  const keep = "select longhaul_keep_blob($1, 'text/plain', 'bytes'::bytea)";
  expect(await refusal("bob", keep, [own])).toBe("done");
  expect(await refusal("bob", keep, [`later-${RUN}`])).toBe("done");
  expect(await refusal("bob", keep, [id])).toBe(DENIED);
  // Another person's delegate would have this id.
  expect(await refusal("bob", keep, [`${id}.s1c0`])).toBe(DENIED);
  expect(await sql(operator, "select 1 from blob_uses where session_id like $1", [`${id}%`])).toEqual([]);
  await sql(operator, "delete from blob_uses where session_id = $1", [`later-${RUN}`]);
});

test("a session's rows are found by its key, and the worker's statements are free of policies", async () => {
  const id = await sessionOf("alice");
  // The planner would scan tables with a few rows.
  const byIndex = `options=${encodeURIComponent("-c enable_seqscan=off -c enable_bitmapscan=off")}`;
  const planOf = async (url: string) =>
    (
      await sql<{ "QUERY PLAN": string }>(
        `${url}${url.includes("?") ? "&" : "?"}${byIndex}`,
        // Without when a result was hidden, which the view looks up in its marks.
        "explain select id, role, content from messages where session_id = $1",
        [id],
      )
    )
      .map((row) => row["QUERY PLAN"])
      .join("\n");
  expect(await planOf(operator)).not.toMatch(/SubPlan|client_roles/);
  const plan = await planOf(urls.alice);
  expect(plan).toContain(`Index Cond: (session_id = '${id}'`);
  expect(plan).toMatch(/Index (Only )?Scan using sessions_(pkey|owner_idx)/);
});

test("a revoked role cannot connect, and one that is granted again has another password", async () => {
  const name = `carol-${RUN}`;
  const [first, second] = [
    await longhaul(["database", "client", name]),
    await longhaul(["database", "client", name]),
  ];
  expect(await longhaul(["list"], { environment: { DATABASE_URL: first.out.trim() } })).toMatchObject({
    code: 4,
  });
  expect(await longhaul(["list"], { environment: { DATABASE_URL: second.out.trim() } })).toMatchObject({
    code: 0,
  });
  expect(await longhaul(["database", "client", name, "--revoke"])).toMatchObject({ code: 0 });
  expect(await longhaul(["list"], { environment: { DATABASE_URL: second.out.trim() } })).toMatchObject({
    code: 4,
  });
  expect(await longhaul(["database", "client", name, "--revoke"])).toMatchObject({ code: 5 });
});

/** Postgres: insufficient privilege, also by a policy. */
const DENIED = "42501";
/** One pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

test("the base of a repository's session is read and forked by its person, and seen by no other", async () => {
  const folder = emptyFolder();
  const git = (...words: string[]) =>
    execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@b.c", ...words], { cwd: folder });
  git("init", "-q", "-b", "main");
  writeFileSync(join(folder, "mine.txt"), "alice's\n");
  git("add", "-A");
  git("commit", "-qm", "One");
  const task = "run: echo more >> mine.txt\nsay: Done.";
  const words = ["start", task, "--repo", `file://${folder}`, "--push", "never"];
  const started = await longhaul(words, as("alice"));
  expect(started, started.err).toMatchObject({ code: 0 });
  const id = started.out.trim();
  await untilStatus(id, ({ endedAt }) => endedAt !== null);
  expect((await longhaul(["diff", id], as("alice"))).out).toContain("+more");
  const cwd = emptyFolder();
  expect((await longhaul(["pull", id, "out"], { ...as("alice"), cwd })).code).toBe(0);
  expect(readFileSync(join(cwd, "out/mine.txt"), "utf8")).toBe("alice's\nmore\n");
  const forked = await longhaul(["fork", id, "--from-step", "2", "--detach"], as("alice"));
  expect(forked, forked.err).toMatchObject({ code: 0 });
  await untilStatus(forked.out.trim(), ({ endedAt }) => endedAt !== null);
  const bases = "select key from bases where url = $1";
  const [base] = await sql<{ key: string }>(urls.alice, bases, [`file://${folder}`]);
  expect(base?.key).toMatch(/^[0-9a-f]{32}$/);
  expect(await sql(urls.bob, bases, [`file://${folder}`])).toEqual([]);
  const bobs = await sessionOf("bob");
  const taken =
    "insert into checkpoints (session_id, epoch, step, manifest, pack, base_key) values ($1, 1, 99, '', '', $2)";
  expect(await refusal("bob", taken, [bobs, base?.key])).toBe("42501");
  expect(await refusal("alice", "update bases set commit = ''")).toBe("42501");
});
