/** A session whose sandbox reaches only listed names: refusals are reported, names allowed while it runs, and revoked. */
import { randomBytes } from "node:crypto";
import { afterAll, expect, it } from "vitest";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { allowDomain } from "../../activities/store/egress.ts";
import { startAgent } from "../support/agent-harness.ts";
import { perFile } from "../support/per-file.ts";
import { resetToStep } from "../support/reset-run.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { untilWaiting } from "../support/questions.ts";
import { resultTexts } from "../support/stored.ts";

/** Names without a server: once allowed, they are refused because their address is not of the public internet. */
const [NAME, OTHER] = ["closed.test", "other.test"];
const egress = {
  name: `longhaul-egress-test-${randomBytes(4).toString("hex")}`,
  hosts: [`${NAME}:192.0.2.1`, `${OTHER}:192.0.2.2`],
};
const agent = perFile(() =>
  startAgent({ sandboxHost: createDockerHost({ docker: connectDocker(), name: "test", egress }) }),
);
afterAll(() => agent.deps.sandboxHost.removeUnused());

const ask = `curl -s -o /dev/null -D - http://${NAME}/ | grep -o 'blocked-[a-z-]*'`;

it(
  "refuses a name, allows it once a person approves, and refuses it after a reset again",
  { tags: ["E6"] },
  async () => {
    const script = scriptedModel()
      .calls("bash", {
        command: `${ask}; until [ "$(${ask})" = blocked-private-address ]; do sleep 0.2; done; echo through`,
      })
      .says("Fetched.")
      .calls("bash", { command: ask })
      .says("Refused.");
    const session = await agent.start(script, {
      config: { sandbox: { network: "listed", domains: ["good.test"] } },
    });
    const denied = await session.until("egress:denied");
    expect(denied.data).toMatchObject({
      host: NAME,
      port: 80,
      reason: "blocked-by-allowlist",
      allow: `longhaul allow ${session.id} ${NAME}`,
    });
    const { store } = agent.database;
    await allowDomain(store, { sessionId: session.id, domain: NAME, by: "person" });
    expect(await session.handle.result()).toMatchObject({ result: "Fetched." });
    const [first = ""] = await resultTexts(store, session.id);
    expect(first).toMatch(/^blocked-by-allowlist\nthrough\n/);
    expect(first).toContain(`longhaul allow ${session.id} NAME`);
    const [created] = await session.dataOf("sandbox:created");
    expect(created).toMatchObject({ network: { reach: "listed", reachable: [] } });
    expect((await session.dataOf("egress:allowed"))[0]).toEqual({ domain: NAME, by: "person" });

    const runId = await resetToStep(agent.client, session.id, 1);
    await agent.client.workflow.getHandle(session.id, runId).result();
    expect((await resultTexts(store, session.id)).at(-1)).toMatch(/^blocked-by-allowlist/);
  },
);

it("asks a person once about names that are not listed, and allows approved ones", async () => {
  const script = scriptedModel()
    .calls("bash", { command: ask })
    .calls("bash", { command: `${ask}; ${ask.replaceAll(NAME, OTHER)}` })
    .calls("bash", { command: ask.replaceAll(NAME, OTHER) })
    .says("Done.");
  const session = await agent.start(script, {
    config: { sandbox: { network: "listed", domains: ["good.test"], askForDomains: true } },
  });
  const first = await session.until("question:asked");
  expect(first.data).toMatchObject({ id: "s1c0e", kind: "egress", text: expect.stringContaining(NAME) });
  await untilWaiting(agent.database.store, session);
  await session.handle.executeUpdate("answerQuestion", {
    args: [{ question: "s1c0e", action: "allow", by: "Ada" }],
  });
  const second = await session.until("question:asked", ({ step }) => step === 2);
  expect(second.data.text).toContain(OTHER);
  expect(second.data.text).not.toContain(NAME);
  await session.handle.executeUpdate("answerQuestion", {
    args: [{ question: second.data.id, action: "deny" }],
  });
  expect(await session.result()).toMatchObject({ result: "Done." });
  const results = await resultTexts(agent.database.store, session.id);
  expect(results[0]).toMatch(/^blocked-by-allowlist/);
  expect(results[1]).toMatch(/^blocked-private-address\nblocked-by-allowlist/);
  expect(results[2]).toMatch(/^blocked-by-allowlist/);
  expect(await session.dataOf("question:asked")).toHaveLength(2);
  expect((await session.dataOf("egress:allowed"))[0]).toEqual({ domain: NAME, by: "Ada" });
  expect(JSON.stringify(session.model.requests[1])).toContain(`${NAME} may be reached from now on`);
});

it("offers nobody to allow an address that allowing does not open, and asks no one", async () => {
  const script = scriptedModel().calls("bash", { command: "curl -s http://192.0.2.3/" }).says("Refused.");
  const session = await agent.start(script, {
    config: { sandbox: { network: "listed", domains: ["good.test"], askForDomains: true } },
  });
  expect(await session.result()).toMatchObject({ result: "Refused." });
  expect(await session.dataOf("egress:denied")).toEqual([
    { host: "192.0.2.3", port: 80, reason: "blocked-by-allowlist", count: 1 },
  ]);
  expect(await session.dataOf("question:asked")).toEqual([]);
  const [result = ""] = await resultTexts(agent.database.store, session.id);
  expect(result).toContain("The person's configuration can allow the address: sandbox.allow");
  expect(result).not.toContain("longhaul allow");
});
