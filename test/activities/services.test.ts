import { describe, expect, test } from "vitest";
import { listeningPorts } from "../../activities/sandbox/docker/sandbox-ports.ts";
import { serviceContainer } from "../../activities/sandbox/docker/services/service-profile.ts";
import { eventually } from "../support/eventually.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";
import { cache, database, inspectService, labelled } from "../support/test-services.ts";
import { runServices, type RunningServices } from "../support/running-services.ts";

const sandboxes = useTestSandboxes();

const select = async ({ sandbox }: Pick<RunningServices, "sandbox">, sql: string): Promise<string> => {
  const { out, err } = await bash(sandbox, `psql -h db -U postgres -qAtc "${sql}"`);
  return (out + err).trim();
};
const idOf = async (sessionId: string, name: string): Promise<string> =>
  (await inspectService(sandboxes.docker, sessionId, name)).Id;

describe("the services of a sandbox", () => {
  test("are adopted by the next worker, which makes only the one that is missing", async () => {
    const services = {
      db: await database(),
      cache: await cache(),
      late: await cache({
        command: ["--port", "6380"],
        ports: [6380],
        health: { test: ["CMD", "redis-cli", "-p", "6380", "ping"] },
      }),
    };
    const { spec, sandbox, again } = await runServices(sandboxes, services);
    // For `longhaul ports`: what of the services' ports is known, and none of our own.
    await sandbox.start({ id: "web", argv: ["python3", "-m", "http.server", "8080"] });
    const container = sandboxes.docker.getContainer(sandbox.container);
    const listed = await eventually("the agent's own server", async () => {
      const all = await listeningPorts(container, new Map([[6380, "late"]]));
      return all.some(({ port }) => port === 8080) ? all : undefined;
    });
    expect(listed.map(({ port, service, process }) => `${port} ${service ?? process}`).toSorted()).toEqual(
      expect.arrayContaining(["6380 late", "8080 python3"]),
    );
    expect(listed.some(({ port }) => port === 6379)).toBe(false);
    const before = await Promise.all(["db", "cache"].map((name) => idOf(spec.sessionId, name)));
    // As if the first worker had died before it made the last one.
    await sandboxes.docker
      .getContainer(serviceContainer(spec.sessionId, "late"))
      .remove({ force: true, v: true });
    const { outcomes } = await again(sandboxes.newHost());
    expect(outcomes.map(({ name, wasStarted, failed }) => [name, wasStarted, failed])).toEqual([
      ["db", false, undefined],
      ["cache", false, undefined],
      ["late", true, undefined],
    ]);
    expect(await Promise.all(["db", "cache"].map((name) => idOf(spec.sessionId, name)))).toEqual(before);
  });

  test("begin anew with a restarted sandbox: fresh data is empty, kept data is there", async () => {
    const script = { "db/init.sql": "create table given(n int); insert into given values (7);" };
    const files = { "db/init.sql": "/docker-entrypoint-initdb.d/init.sql" };
    const running = await runServices(
      sandboxes,
      { db: await database({ files, data: "kept" }), cache: await cache({ dependsOn: { db: "healthy" } }) },
      { files: script },
    );
    expect(await select(running, "insert into given values (8); select sum(n) from given")).toBe("15");
    await bash(running.sandbox, "redis-cli -h cache set key value");
    await sandboxes.docker.getContainer(running.sandbox.container).restart({ t: 0 });
    const restarted = await running.again();
    expect(restarted.home.boot).not.toBe(running.home.boot);
    expect(
      restarted.outcomes.every(({ wasStarted, failed }) => wasStarted === true && failed === undefined),
    ).toBe(true);
    expect(await select(restarted, "select sum(n) from given")).toBe("15");
    expect((await bash(restarted.sandbox, "redis-cli -h cache exists key")).out).toBe("0\n");
    const started = await Promise.all(
      ["db", "cache"].map(
        async (name) =>
          (await inspectService(sandboxes.docker, running.spec.sessionId, name)).State.StartedAt,
      ),
    );
    expect(started.toSorted()).toEqual(started);
  });

  test("leave nothing when the session is removed, and their kept data when it is parked", async () => {
    const running = await runServices(sandboxes, {
      db: await database({ data: "kept" }),
      cache: await cache(),
    });
    const { sessionId } = running.spec;
    await select(running, "create table here(n int)");
    await sandboxes.host.remove(sessionId, { keeps: "service-data" });
    const kept = await labelled(sandboxes.docker, sessionId);
    expect(kept).toEqual([expect.stringMatching(/^longhaul\.service-.*\.db\./)]);
    // The reaper finds the session by it.
    expect(await sandboxes.host.sessions()).toContain(sessionId);
    const back = await running.again();
    expect(await select(back, "select count(*) from here")).toBe("0");
    await sandboxes.host.remove(sessionId);
    expect(await labelled(sandboxes.docker, sessionId)).toEqual([]);
  });

  test("go in one round of the reaper when their sandbox was removed by hand", async () => {
    const { spec, sandbox } = await runServices(sandboxes, { cache: await cache() });
    const other = await runServices(sandboxes, { cache: await cache() });
    await sandboxes.docker.getContainer(sandbox.container).remove({ force: true, v: true });
    const lines = await sandboxes.host.removeUnused();
    expect(lines).toContainEqual(expect.stringContaining(serviceContainer(spec.sessionId, "cache")));
    await expect(idOf(spec.sessionId, "cache")).rejects.toMatchObject({ statusCode: 404 });
    expect(await idOf(other.spec.sessionId, "cache")).toMatch(/^[0-9a-f]{64}$/);
  });

  test("of two sessions share no name, no port and no data", async () => {
    const services = { db: await database() };
    const [one, two] = await Promise.all([
      runServices(sandboxes, services),
      runServices(sandboxes, services),
    ]);
    await select(one, "create table mine(n int)");
    expect(await select(two, "select count(*) from mine")).toContain('"mine" does not exist');
    expect(await idOf(one.spec.sessionId, "db")).not.toBe(await idOf(two.spec.sessionId, "db"));
  });

  test("fail with the reason and the end of the log when they do not become healthy in time", async () => {
    const slow = await database({
      entrypoint: ["sh", "-c", "echo still starting; sleep 90"],
      health: { timeout: "1s" },
    });
    const { outcomes } = await runServices(sandboxes, {
      db: slow,
      cache: await cache({ dependsOn: { db: "healthy" } }),
    });
    expect(outcomes).toMatchObject([
      {
        name: "db",
        failed: { why: expect.stringContaining("not healthy after 1 s"), log: "still starting" },
      },
      { name: "cache", failed: { why: "it was not started, because db failed" } },
    ]);
  });

  test.each([
    ["a program that is not there", { entrypoint: ["/not/there"] }, /no such file or directory/],
    [
      "a program that ends",
      { entrypoint: ["sh", "-c", "echo broken >&2; exit 3"] },
      /it ended with exit code 3/,
    ],
  ])("fail with %s", async (_what, changes, why) => {
    const { outcomes } = await runServices(sandboxes, { db: await database(changes) });
    expect(outcomes[0]?.failed?.why).toMatch(why);
  });

  test("are not started on a port that a program of the agent has, and name it", async () => {
    const running = await runServices(sandboxes, { cache: await cache() });
    await sandboxes.docker
      .getContainer(serviceContainer(running.spec.sessionId, "cache"))
      .remove({ force: true, v: true });
    await running.sandbox.start({
      id: "server",
      argv: ["python3", "-m", "http.server", "6379", "--bind", "127.0.0.1"],
    });
    await expect
      .poll(async () => (await bash(running.sandbox, "nc -z 127.0.0.1 6379 && echo open")).out)
      .toBe("open\n");
    const { outcomes } = await running.again();
    expect(outcomes[0]?.failed?.why).toMatch(
      /its port 6379 is taken by the process \d+ \(python3\) in the sandbox/,
    );
  });

  test.each([
    ["a link that leads out", "ln -s /etc/passwd init.sql", /leaves \/workspace/],
    ["a file that is not there", "true", /no such file/],
    ["more than 1 MiB", "head -c 1048577 /dev/zero > init.sql", /at most 1 MiB/],
  ])("are not started at all for a file with %s", async (_what, script, why) => {
    const { spec, sandbox } = await runServices(sandboxes, { cache: await cache() });
    await bash(sandbox, script);
    await sandboxes.host.remove(spec.sessionId, { keeps: "service-data" });
    const services = { cache: await cache(), db: await database({ files: { "init.sql": "/init.sql" } }) };
    const again = await runServices(sandboxes, services, { ...spec, services: ["cache", "db"] });
    await bash(again.sandbox, script);
    const { outcomes } = await again.again();
    expect(outcomes).toEqual([{ name: "db", failed: { why: expect.stringMatching(why), log: "" } }]);
    expect(
      (await labelled(sandboxes.docker, spec.sessionId)).filter((name) => name.includes("service")),
    ).toEqual([]);
  });

  test("of which an image is missing fail with its name", async () => {
    const missing = await cache({ image: "localhost:1/longhaul/not-there:1" });
    const { outcomes } = await runServices(sandboxes, { cache: missing });
    expect(outcomes[0]?.failed?.why).toMatch(
      /the image localhost:1\/longhaul\/not-there:1 of a service is not on this Docker host/,
    );
  });
});
