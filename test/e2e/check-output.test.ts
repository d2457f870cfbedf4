/** All that a check printed: by its handle, for the model and for people, also in a fork, after the excerpt that says why it failed. */
import { expect, it } from "vitest";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import { copySessionLine } from "../../activities/store/fork.ts";
import { readWhole } from "../../activities/store/reading.ts";
import { exportDocument, wholeOutputText } from "../../client/sessions/session-export.ts";
import { useAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { makeRemote, onRepository } from "../support/remotes.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";

const agent = useAgent();

const SECRET = "sk-canary-5f1e2d3c4b5a69788796a5b4c3d2e1f0";
/** More than an excerpt has, and more than is searched for the cause. */
const LONG = `seq 1 60000; echo 'key ${SECRET}'; seq 60001 120000; test -f mended`;
const HANDLE = /read_output handle="(s\d+c\d+v\d+-[0-9a-f]+)"/;

const verify = (command: string, rounds: number) => ({
  verify: verifySchema.parse({ commands: [command], rounds }),
});

it("is read by the model and by people, whole and masked", { timeout: 120_000 }, async () => {
  const script = scriptedModel()
    .says("Done.")
    .replies(({ items }) => {
      const [, handle] = HANDLE.exec(JSON.stringify(items.at(-1)).replaceAll("\\", "")) ?? [];
      return { parts: [call("read_output", { handle, offset: 300_000, limit: 100 })] };
    })
    .calls("bash", { command: "touch mended" })
    .says("Mended.");
  const session = await agent.start(script, { config: verify(LONG, 1) });
  expect(await session.result()).toMatchObject({ verified: "passed" });
  const [failed, passed] = await session.dataOf("verify:ended");
  expect(failed?.tail.length).toBeLessThan(8_200);
  expect(failed?.handle).not.toBe(passed?.handle);
  const row = await sessionRow(agent, session.id);
  const services = clientServices(agent);
  for (const { handle = "" } of [failed ?? {}, passed ?? {}]) {
    const lines = (await wholeOutputText(services, row, handle)).trimEnd().split("\n");
    expect(lines).toHaveLength(120_001);
    expect([lines[0], lines[59_999], lines[120_000]]).toEqual(["1", "60000", "120000"]);
    expect(lines[60_000]).toMatch(/^key \[/);
  }
  expect(JSON.stringify(session.model.requests[2]?.items.at(-1))).toContain("characters 300000-300100 of ");
  const whole = exportDocument(row, await readWhole(agent.database.store.db, session.id));
  expect(whole.verifications).toMatchObject([
    { round: 0, outcome: "failed", handle: failed?.handle },
    { round: 1, outcome: "passed", handle: passed?.handle },
  ]);
  // The message that names it is copied, too.
  const to = `${session.id}-copy`;
  await copySessionLine(agent.database.store, { from: session.id, to, beforeStep: 3 });
  const copied = await wholeOutputText(services, { id: to }, failed?.handle ?? "");
  expect(copied).toHaveLength((await wholeOutputText(services, row, failed?.handle ?? "")).length);
});

it("is text, whatever bytes a check prints", { timeout: 120_000 }, async () => {
  const command = "printf '\\344hnlich\\0 \\033[31mError: rot\\033[0m\\033]0;title\\007\\n'; exit 1";
  const session = await agent.start(scriptedModel().says("Done."), { config: verify(command, 0) });
  expect(await session.result()).toMatchObject({ verified: "failed" });
  const [seen] = await session.dataOf("verify:ended");
  const whole = await wholeOutputText(clientServices(agent), { id: session.id }, seen?.handle ?? "");
  for (const text of [seen?.tail ?? "", whole]) {
    expect(text).toMatch(/^\ufffdhnlich.* Error: rot\n?$/);
    expect(["\0", "\u001b", "\u0007"].filter((sign) => text.includes(sign))).toEqual([]);
  }
});

it("is apart for each time that a command ran, though all in one look", { timeout: 120_000 }, async () => {
  const command = "test -f once || { touch once; echo first; exit 0; }; echo second";
  const place = makeRemote({ "a.js": "" });
  const config = { ...onRepository(place.url), ...verify(command, 0) };
  const session = await agent.start(scriptedModel().says("Done."), { config });
  expect(await session.result()).toMatchObject({ verified: "passed" });
  const [seen] = await session.dataOf("verify:ended");
  const row = await sessionRow(agent, session.id);
  expect(await wholeOutputText(clientServices(agent), row, seen?.handle ?? "")).toBe("second\n");
});

it("has no handle if nothing was printed, and no excerpt names one that is all of it", async () => {
  const script = scriptedModel().says("Done.").says("Still.");
  const session = await agent.start(script, { config: verify("echo 'Error: x'; exit 1", 1) });
  await session.result();
  expect(JSON.stringify(session.model.requests[1]?.items.at(-1))).not.toContain("read_output");
  const silent = await agent.start(scriptedModel().says("Done."), { config: verify("true", 0) });
  await silent.result();
  expect((await silent.dataOf("verify:ended"))[0]?.handle).toBeUndefined();
  await expect(
    wholeOutputText(clientServices(agent), await sessionRow(agent, silent.id), "s1c0v0-000000"),
  ).rejects.toThrow("has no output with the handle");
}, 120_000);
