import { expect, test } from "vitest";
import { useAgent } from "../support/agent-harness.ts";
import { delegating } from "../support/delegating.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { cache, database, labelled, withTestServices } from "../support/test-services.ts";

const agent = useAgent();

const SELECT = "psql -h db -U postgres -Atc 'select 40 + 2' && redis-cli -h cache ping && id -u";

test.each(["none", "bridge"] as const)(
  "a session's tools use its database and its cache by name, with network %s",
  async (network) => {
    const script = scriptedModel()
      .calls("bash", { command: SELECT })
      .calls("bash_output", { id: "service:db" })
      .says("Done.");
    const services = await withTestServices({ db: await database(), cache: await cache() });
    const session = await agent.run(script, { config: { sandbox: { ...services, network } } });
    const [answer, log] = await resultTexts(agent.database.store, session.id);
    expect(answer).toBe("42\nPONG\n1000");
    expect(log).toContain("database system is ready to accept connections");
    const events = await session.events();
    const types = events.map(({ type }) => type);
    expect(types.filter((type) => type === "service:healthy")).toHaveLength(2);
    expect(types.lastIndexOf("service:healthy")).toBeLessThan(types.indexOf("step:started"));
    const asked = JSON.stringify(session.model.requests[0]);
    expect(asked).toContain("at db:5432, cache (");
    expect(asked).toContain("restart_service");
    expect(await labelled(agent.docker, session.id)).toEqual([]);
  },
);

test("a service that does not work ends the run before a model is asked, and nothing is left", async () => {
  const slow = await cache({
    entrypoint: ["sh", "-c", "echo still starting; sleep 90"],
    health: { timeout: "1s" },
  });
  const services = await withTestServices({ cache: slow });
  const session = await agent.start(scriptedModel().says("Never asked."), { config: { sandbox: services } });
  await expect(session.result()).rejects.toThrow();
  const ended = await session.until("session:ended");
  expect(ended.data.reason).toMatch(/ServiceFailed[^]*cache[^]*not healthy after 1 s[^]*still starting/);
  expect((await session.until("service:failed")).data).toMatchObject({
    name: "cache",
    log: "still starting",
  });
  expect(session.model.requests).toEqual([]);
  expect(await labelled(agent.docker, session.id)).toEqual([]);
});

const FILL =
  "redis-cli -h cache eval \"local s=string.rep('x',1048576) for i=1,200 do redis.call('set',i,s..i) end\" 0";

test("a service that is killed at its memory limit is told once, and can be started again", async () => {
  const script = scriptedModel()
    .calls("bash", { command: FILL })
    .calls("bash", { command: "echo two" })
    .calls("restart_service", { name: "cache" })
    .calls("bash", { command: "redis-cli -h cache ping" })
    .says("Done.");
  const services = await withTestServices({ cache: await cache() });
  const session = await agent.run(script, { config: { sandbox: services } });
  const results = await resultTexts(agent.database.store, session.id);
  expect(results.slice(2)).toEqual(["The service cache was started again, and works.", "PONG"]);
  const lost = (await session.events()).filter(({ type }) => type === "service:lost");
  expect(lost).toMatchObject([
    { step: 1, data: { name: "cache", why: "it was killed at its memory limit" } },
  ]);
  const notice = "The service cache does not run any more: it was killed at its memory limit";
  // A request has its messages as they were sent and as they were read: the task, which is there once, says how often.
  const times = (text: string, part: string) => text.split(part).length - 1;
  const counts = session.model.requests.map((request) => {
    const text = JSON.stringify(request);
    return times(text, notice) / times(text, "Do what is asked.");
  });
  expect(counts).toEqual([0, 1, 1, 1, 1]);
});

test("a delegate has services of its own: what it changes there, its parent does not see", async () => {
  const script = scriptedModel()
    .calls("bash", { command: "redis-cli -h cache set of parent" })
    .calls("delegate", { task: "Change the cache." })
    // The delegate's.
    .calls("bash", { command: "redis-cli -h cache get of; redis-cli -h cache set of delegate" })
    .says("It is changed.")
    .calls("bash", { command: "redis-cli -h cache get of" })
    .says("Done.");
  const services = await withTestServices({ cache: await cache() });
  const session = await agent.run(script, { config: { ...delegating(), sandbox: services } });
  const texts = await resultTexts(agent.database.store, session.id);
  expect([texts[0], texts.at(-1)]).toEqual(["OK", "parent"]);
  const child = `${session.id}.s2c0`;
  // An absent value is an empty line.
  expect(await resultTexts(agent.database.store, child)).toEqual(["\nOK"]);
  expect(await labelled(agent.docker, child)).toEqual([]);
});

test("no service is started while a session plans", async () => {
  const script = scriptedModel().calls("bash", { command: "getent hosts cache | head -1" }).says("The plan.");
  const services = await withTestServices({ cache: await cache() });
  const session = await agent.run(script, { config: { plan: true, sandbox: services } });
  expect(await resultTexts(agent.database.store, session.id)).toEqual([expect.stringContaining("127.0.0.1")]);
  expect((await session.events()).map(({ type }) => type)).not.toContain("service:started");
  const asked = JSON.stringify(session.model.requests[0]);
  expect(asked).toContain("They are started when the plan is approved.");
  expect(asked).not.toContain("restart_service");
});
