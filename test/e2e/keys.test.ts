/** A session whose sandbox uses a key: what the model, Postgres and Temporal get, and what happens when the key goes. */
import { randomBytes } from "node:crypto";
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, expect, it } from "vitest";
import { keysSchema } from "../../activities/config/key-settings.ts";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { startAgent } from "../support/agent-harness.ts";
import { gatewayOf } from "../support/bridge-gateway.ts";
import { type KeyOrigins, serveOrigins } from "../support/key-origins.ts";
import { perFile } from "../support/per-file.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";

const VALUE = `s3cr3t-${randomBytes(12).toString("hex")}`;
const egress = { name: `longhaul-egress-test-${randomBytes(4).toString("hex")}`, hosts: [] as string[] };
const definitions: Record<string, ReturnType<typeof keysSchema.parse>[string]> = {};
const keys = { definitions, valueOf: () => VALUE };
const agent = perFile(() =>
  startAgent({
    keys,
    sandboxHost: createDockerHost({ docker: connectDocker(), name: "test", egress, keys }),
  }),
);
let origins: KeyOrigins;
let gateway: string;
const ends: (() => unknown)[] = [];

beforeAll(async () => {
  origins = await serveOrigins(VALUE, (end) => ends.push(end));
  gateway = await gatewayOf(connectDocker());
  egress.hosts.push(`api.test:${gateway}`);
});
afterAll(async () => {
  await agent.deps.sandboxHost.removeUnused();
  await origins.close();
  for (const end of ends) await end();
});

const define = () =>
  Object.assign(
    definitions,
    keysSchema.parse({
      staging: {
        host: `api.test:${origins.port}`,
        header: "Authorization: Bearer {}",
        methods: ["GET"],
        paths: ["/v1/**"],
      },
    }),
  );
const settings = (names: readonly string[]) => ({
  sandbox: {
    network: "listed" as const,
    allow: [`${gateway}/32`],
    keys: [...names],
    inherited: { certificates: origins.authority },
  },
});
const ask = (path: string, more = "") => `curl -s ${more} https://api.test:${origins.port}${path}`;

it("the model gets an answer without the value, and no table and no history has it", async () => {
  define();
  const script = scriptedModel()
    .calls("bash", { command: ask("/v1/x?secret=1") })
    .calls("bash", { command: ask("/v1/x", "-X DELETE") })
    .says("Asked.");
  const session = await agent.start(script, { config: settings(["staging"]) });
  expect(await session.result()).toMatchObject({ result: "Asked." });
  const [first = "", second = ""] = await resultTexts(agent.database.store, session.id);
  expect(first).toContain("Bearer [key staging]");
  expect(second).toContain(
    "DELETE api.test/v1/x did not use the key staging: its method is not among the key's",
  );
  expect(await session.dataOf("egress:key-used")).toEqual([
    { key: "staging", host: "api.test", method: "GET", path: "/v1/x", status: 200, count: 1 },
  ]);
  expect(await session.dataOf("egress:key-refused")).toEqual([
    { key: "staging", host: "api.test", method: "DELETE", path: "/v1/x", reason: "method", count: 1 },
  ]);
  const { db } = agent.database.store;
  const tables = await db.execute<{ name: string }>(
    sql`select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables where schemaname not in ('pg_catalog', 'information_schema')`,
  );
  expect(tables.rows.length).toBeGreaterThan(20);
  for (const { name } of tables.rows) {
    const found = await db.execute<{ count: string }>(
      sql.raw(`select count(*) from ${name} as found where position('${VALUE}' in found::text) > 0`),
    );
    expect([name, Number(found.rows[0]?.count)]).toEqual([name, 0]);
  }
  expect(JSON.stringify(await session.handle.fetchHistory())).not.toContain(VALUE);
  expect(JSON.stringify(session.model.requests)).not.toContain(VALUE);
});

it("a session that names a key which the worker does not have is refused, and nothing runs", async () => {
  const session = await agent.start(scriptedModel().says("Never."), { config: settings(["nope"]) });
  await expect(session.result()).rejects.toMatchObject({
    cause: { type: "PolicyRefused", message: expect.stringContaining("sandbox.keys has nope") },
  });
  expect(session.model.requests).toEqual([]);
});

it("the next opening goes on without a key that was removed meanwhile, and an event says so", async () => {
  define();
  const script = scriptedModel()
    .calls("bash", { command: ask("/v1/x") })
    .says("Asked.")
    .calls("bash", { command: `${ask("/v1/x")}; echo "$? end"` })
    .says("Asked again.");
  const session = await agent.start(script, { config: settings(["staging"]) });
  expect(await session.result()).toMatchObject({ result: "Asked." });
  delete definitions["staging"];
  const before = origins.seen.length;
  const again = await session.resume("Ask again.", "again");
  expect(await again.result()).toMatchObject({ result: "Asked again." });
  const results = await resultTexts(agent.database.store, session.id);
  expect(results[0]).toContain("[key staging]");
  // The host was listed by its key alone.
  expect(results.at(-1)).toMatch(/[1-9]\d* end/);
  expect(origins.seen.slice(before)).toEqual([]);
  expect(await session.dataOf("egress:key-refused")).toContainEqual(
    expect.objectContaining({ key: "staging", reason: "removed" }),
  );
});
