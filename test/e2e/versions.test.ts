/** A fleet whose workers Temporal knows by their versions: what holds on any server. */
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { expect, inject, it, onTestFinished } from "vitest";
import type { SessionStatusDocument } from "../../client/sessions/status-document.ts";
import { cacheFolder, temporalBinary } from "../../client/setup/temporal-binary.ts";
import { versionsFinding } from "../../client/setup/versions-check.ts";
import { startClient } from "../support/client-process.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession, type KillableSession } from "../support/killable-session.ts";
import { scriptedModel, text } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";
import { deploymentsOf, makeCurrent } from "../support/versions.ts";

const database = useDatabase(10);

const pinnedTo = (deployment: string, build: string) => ({
  LONGHAUL_DEPLOYMENT: deployment,
  LONGHAUL_BUILD_ID: build,
  LONGHAUL_VERSIONING: "pinned",
});

/** As a person asks, who gets exit code 0 whatever the session waits for. */
async function statusOf(id: string) {
  const ask = async (...more: string[]) => {
    const client = startClient(["status", id, ...more], {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: inject("temporalAddress"),
      LONGHAUL_NO_SETUP: "1",
    });
    expect(await client.ended(), client.err()).toBe(0);
    return client.out();
  };
  const document = JSON.parse(await ask("--json")) as SessionStatusDocument;
  return { document, shown: await ask() };
}

it("a pinned session whose version has no worker says so, and doctor's command moves it to the current one [V3]", async () => {
  const deployment = `fleet-${randomBytes(3).toString("hex")}`;
  const script = scriptedModel().answers(text("Half"), { type: "hang" }).says("Done.");
  const session = await startKillableSession(database, script);
  onTestFinished(() => session.close());
  const { client } = session.place;
  const first = await session.startWorker(pinnedTo(deployment, "v1"));
  await makeCurrent(client, deployment, "v1");
  await eventually("its step is under way", () => session.model.log.length === 1, 60_000);
  await session.startWorker(pinnedTo(deployment, "v2"));
  await makeCurrent(client, deployment, "v2");
  await first.kill();

  const { document, shown } = await statusOf(session.id);
  expect(document).toMatchObject({ status: "active", live: false, build: "v1" });
  expect(shown).toContain("waits for a worker of build v1");
  const address = inject("temporalAddress");
  const finding = await eventually("v1 drains", async () => {
    const found = await versionsFinding(address, deployment);
    return found.fix === undefined ? undefined : found;
  });
  expect(finding).toMatchObject({ ok: true, warning: true, found: `${deployment}: current v2, draining v1` });

  // As it stands there, by the server's own program.
  const command = /temporal (workflow update-options .*)$/.exec(finding.fix ?? "")?.[1] ?? "";
  const program = await temporalBinary({ cache: cacheFolder(), say: () => undefined });
  const words = command.match(/'[^']*'|\S+/g)?.map((word) => word.replaceAll("'", "")) ?? [];
  const query = words[words.indexOf("--query") + 1] ?? "";
  await eventually(
    "it is listed as pinned",
    async () => {
      for await (const { workflowId } of client.workflow.list({ query }))
        if (workflowId === session.id) return true;
      return false;
    },
    60_000,
  );
  execFileSync(program, [...words, "--yes", "--address", address], { stdio: "pipe" });
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
});

it("off, as it is by default, leaves no deployment on the server [V4]", async () => {
  const before = await startKillableSession(database, scriptedModel().says("Done."));
  onTestFinished(() => before.close());
  const { client } = before.place;
  const known = new Set(await deploymentsOf(client));
  const build = `plain-${randomBytes(3).toString("hex")}`;
  await before.startWorker({ LONGHAUL_BUILD_ID: build });
  expect(await before.handle.result()).toMatchObject({ status: "completed" });
  const fresh = (await deploymentsOf(client)).filter(
    (name) => !known.has(name) && !name.startsWith("fleet-"),
  );
  expect(fresh).toEqual([]);
  expect((await statusOf(before.id)).document.build).toBeNull();
});
