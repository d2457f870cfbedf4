/** A company's project: a database beside it, a package of a private registry behind a key, others of the public one. */
import { randomBytes } from "node:crypto";
import { expect, it, onTestFinished } from "vitest";
import { keysSchema } from "../../activities/config/key-settings.ts";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { withMachine } from "../../client/registries/session-registries.ts";
import { runConfig, startAgent } from "../support/agent-harness.ts";
import { gatewayOf } from "../support/bridge-gateway.ts";
import { serveOrigins } from "../support/key-origins.ts";
import { perFile } from "../support/per-file.ts";
import { registriesAnswer } from "../support/registries-answer.ts";
import { gitIn, makeRemote, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { database, labelled, withTestServices } from "../support/test-services.ts";

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

const PROJECT = {
  "package.json": JSON.stringify({
    name: "shop",
    type: "module",
    scripts: { test: "node --test" },
    dependencies: { "@acme/lib": "1.0.0", pg: "8.16.3" },
  }),
  ".gitignore": "node_modules\n",
  "stock.js": "export const taken = (stock, by) => stock + by;\n",
  "stock.test.js": `import test from "node:test";
import assert from "node:assert";
import pg from "pg";
import "@acme/lib";
import { taken } from "./stock.js";
test("the database and the code agree", async () => {
  const client = new pg.Client({ host: "db", user: "postgres" });
  await client.connect();
  const { rows } = await client.query("select 5 - 2 as stock");
  await client.end();
  assert.strictEqual(taken(5, 2), rows[0].stock);
});
`,
};

it("is built, tested against its database, mended and pushed, and the model never sees the key", async ({
  skip,
}) => {
  if (!(await registriesAnswer())) return skip("no package registry answers on this machine");
  const ends: (() => unknown)[] = [];
  const origins = await serveOrigins(VALUE, (end) => ends.push(end));
  onTestFinished(async () => {
    await agent.deps.sandboxHost.removeUnused();
    await origins.close();
    for (const end of ends) await end();
  });
  const gateway = await gatewayOf(connectDocker());
  egress.hosts.push(`npm.test:${gateway}`);
  Object.assign(
    definitions,
    keysSchema.parse({ npm: { registry: "npm", host: `npm.test:${origins.port}`, scope: "@acme" } }),
  );
  const place = makeRemote(PROJECT);
  const script = scriptedModel()
    .calls("bash", { command: "npm install --no-audit --no-fund && npm test", timeout_seconds: 300 })
    .calls("edit_file", { path: "stock.js", old_string: "stock + by", new_string: "stock - by" })
    .calls("bash", {
      command: "npm test && git add -A && git commit -qm 'Take from the stock'",
      timeout_seconds: 300,
    })
    .says("The test passes.");
  const services = await withTestServices({ db: await database() });
  const sandbox = {
    ...services,
    network: "bridge" as const,
    memory: "1g",
    allow: [`${gateway}/32`],
    keys: ["npm"],
  };
  const machine = withMachine(
    { ...runConfig().sandbox, network: "bridge" },
    process.env,
    process.cwd(),
  ).sandbox;
  const session = await agent.start(script, {
    config: {
      ...onRepository(place.url),
      sandbox: {
        ...machine,
        ...sandbox,
        inherited: {
          ...machine.inherited,
          certificates: [machine.inherited?.certificates ?? "", origins.authority].join("\n"),
        },
      },
    },
  });
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
  const [red, , green] = await resultTexts(agent.database.store, session.id);
  expect(red).toContain("7 !== 3");
  expect(red).toContain("fail 1");
  expect(green).toContain("pass 1");
  expect(gitIn(place.folder, "show", `longhaul/${session.id}:stock.js`)).toContain("stock - by");
  expect(gitIn(place.folder, "log", "--format=%s", "-1", `longhaul/${session.id}`)).toBe(
    "Take from the stock",
  );
  expect(origins.seen.filter((line) => line.endsWith("refused"))).toEqual([]);
  expect(await session.dataOf("egress:key-used")).toContainEqual(expect.objectContaining({ key: "npm" }));
  expect(JSON.stringify(session.model.requests)).not.toContain(VALUE);
  expect(await labelled(agent.docker, session.id)).toEqual([]);
}, 420_000);
