/** All that a worker asks of the Docker engine, by way of a proxy that lets through what compose's does, and nothing else. */
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { pack } from "tar-stream";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { runcOf } from "../../activities/sandbox/docker/known-escapes.ts";
import { listeningPorts, runningSandbox } from "../../activities/sandbox/docker/sandbox-ports.ts";
import { keptName } from "../../activities/sandbox/docker/set-up-images.ts";
import type { SandboxHost } from "../../activities/sandbox/sandbox-host.ts";
import { probeDocker } from "../../temporal/probe.ts";
import { cache } from "../support/test-services.ts";
import { runServices } from "../support/running-services.ts";
import { composedRules, startSocketProxy, type SocketProxy } from "../support/docker-socket-proxy.ts";
import { bash, createTestSandboxes, type TestSandboxes } from "../support/test-sandboxes.ts";

let proxy: SocketProxy;
let host: SandboxHost;
let sandboxes: TestSandboxes;
const egress = `longhaul-egress-test-${randomBytes(4).toString("hex")}`;
const [kept = "", built = ""] = [1, 2].map(() => randomBytes(16).toString("hex"));
const behind = () => connectDocker({ protocol: "http", host: "127.0.0.1", port: proxy.port });

beforeAll(async () => {
  proxy = await startSocketProxy(composedRules());
  sandboxes = createTestSandboxes();
  host = createDockerHost({ docker: behind(), name: "behind", egress: { name: egress, hosts: [] } });
});
afterAll(async () => {
  await sandboxes.dispose();
  await host.close();
  const leftovers = [
    sandboxes.docker.getContainer(egress).remove({ force: true }),
    ...[kept, built].map((key) => sandboxes.docker.getImage(keptName(key)).remove({ force: true })),
  ];
  await Promise.allSettled(leftovers);
  await sandboxes.docker
    .getVolume(egress)
    .remove()
    .catch(() => undefined);
  await proxy.close();
});

test("is let through, and no rule is there that nothing needs", async () => {
  expect(await probeDocker({ DOCKER_HOST: `tcp://127.0.0.1:${proxy.port}` })).toMatch(/^Docker \d/);
  await runcOf(behind());

  const guarded = sandboxes.spec({ network: "bridge", image: inject("sandboxImage") });
  const sandbox = await host.open(guarded);
  expect(sandbox.network.reach).not.toBe("everything");
  expect((await bash(sandbox, "echo hello; sleep 0.1; echo there")).out).toBe("hello\nthere\n");
  await sandbox.start({ id: "serve", argv: ["python3", "-m", "http.server", "8080"] });
  const container = await runningSandbox(behind(), guarded.sessionId, sandbox.identity.container);
  expect(await listeningPorts(container!)).toEqual(expect.any(Array));
  expect(await host.volume(guarded.sessionId)).toBeDefined();

  const listed = await host.open(sandboxes.spec({ network: "listed" }));
  expect(listed.network.reach).not.toBe("everything");

  const setUp = sandboxes.spec({ network: "none" });
  await bash(await host.open(setUp), "touch ~/kept");
  const { setUps } = host;
  const build = (key: string, line: string) => {
    const context = pack();
    context.entry({ name: "Dockerfile" }, `FROM ${setUp.image}\n${line}\n`);
    context.finalize();
    const order = {
      context: Readable.from(context),
      dockerfile: "Dockerfile",
      layers: "test",
      args: {},
      refuseImage: () => undefined,
      timeoutMs: 60_000,
    };
    return setUps!.build(setUp, key, order, AbortSignal.timeout(60_000));
  };
  expect(await build(built, "RUN touch /home/agent/built")).not.toHaveProperty("failed");
  // No sandbox can be made from it, so it is removed.
  expect((await build(randomBytes(16).toString("hex"), "RUN rm /usr/bin/tee")).failed).toContain("tee");
  expect(
    (await build(randomBytes(16).toString("hex"), "COPY --from=longhaul-not-there:1 /a /b")).failed,
  ).toMatch(/the image longhaul-not-there:1 cannot be taken/);
  await setUps!.keep(setUp, kept);
  const again = await setUps!.take(setUp, kept);
  expect((await bash(again!, "ls ~/kept")).out).toBe("/home/agent/kept\n");

  const services = {
    cache: await cache({ data: "kept", dataFolders: ["/data"], files: { "a.txt": "/a.txt" } }),
  };
  const served = await runServices(sandboxes, services, { files: { "a.txt": "one" } }, host);
  expect(served.outcomes).toMatchObject([{ name: "cache", wasStarted: true }]);
  expect(await host.services!.restart(served.home, "cache")).toBe(true);
  expect(await host.services!.log(served.home, "cache")).toContain("Ready to accept connections");
  await host.remove(served.spec.sessionId, { keeps: "service-data" });
  await host.remove(served.spec.sessionId);

  expect(await host.bases?.unable(setUp.image)).toBeUndefined();
  expect(await host.sessions()).toContain(setUp.sessionId);
  await host.removeUnused();
  await host.remove(setUp.sessionId);
  expect(proxy.refused).toEqual([]);
  expect([...proxy.usedRules].toSorted()).toEqual([...composedRules()].toSorted());
});

test("what a worker has no use for is not let through", async () => {
  for (const ask of [
    () => behind().listServices(),
    () => behind().listNetworks(),
    () => behind().listSecrets(),
    () => behind().swarmInspect(),
    () => behind().df(),
  ])
    await expect(ask()).rejects.toMatchObject({ statusCode: 403 });
});
