/** Images of set-ups on a host: which of them a session may get, and which go. */
import { randomBytes } from "node:crypto";
import { createServer } from "node:http";
import { Readable } from "node:stream";
import { eq, sql } from "drizzle-orm";
import { pack } from "tar-stream";
import { expect, onTestFinished, test } from "vitest";
import { keptLabels, keptName } from "../../activities/sandbox/docker/set-up-images.ts";
import { deleteFamily, readFamily } from "../../activities/store/delete-session.ts";
import * as schema from "../../activities/store/schema/index.ts";
import { createSession } from "../../activities/store/sessions.ts";
import { removeDeletedSetUps } from "../../worker/retention.ts";
import { runConfig } from "../support/agent-harness.ts";
import { useDatabase } from "../support/test-database.ts";
import { listen } from "../support/listen.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();
const database = useDatabase(2);
const DAY_MS = 24 * 3_600_000;

const contextOf = (dockerfile: string) => {
  const context = pack();
  context.entry({ name: "Dockerfile" }, dockerfile);
  context.finalize();
  return Readable.from(context);
};
const newKey = () => randomBytes(16).toString("hex");

test("an image is never a session's before it is known that a sandbox runs on it", async () => {
  const spec = sandboxes.spec({ network: "none" });
  await bash(await sandboxes.host.open(spec), "true");
  const setUps = sandboxes.host.setUps!;
  const build = (key: string, line: string) =>
    setUps.build(
      spec,
      key,
      {
        context: contextOf(`FROM ${spec.image}\nRUN ${line}\n`),
        dockerfile: "Dockerfile",
        layers: "test",
        args: {},
        refuseImage: () => undefined,
        timeoutMs: 60_000,
      },
      AbortSignal.timeout(60_000),
    );
  const [unfit, fit] = [newKey(), newKey()];
  onTestFinished(async () => {
    await sandboxes.host.remove(spec.sessionId);
    await sandboxes.docker.getImage(keptName(fit)).remove();
  });
  expect((await build(unfit, "rm /usr/bin/tee")).failed).toContain("the image has no tee");
  expect(await setUps.take(spec, unfit)).toBeUndefined();
  expect(await build(fit, "touch /opt/here")).not.toHaveProperty("failed");
  const taken = await setUps.take(spec, fit);
  expect((await bash(taken!, "ls /opt")).out).toContain("here");
});

test("a build has no way out but loopback, and no more processes than the sandbox", async () => {
  let asked = 0;
  const server = createServer((_request, response) => {
    asked += 1;
    response.end("x");
  });
  const port = await listen(server);
  const spec = sandboxes.spec({ network: "bridge", pids: 77 });
  const setUps = sandboxes.host.setUps!;
  await sandboxes.host.open(spec);
  const key = newKey();
  const build = (dockerfile: string) => {
    const context = contextOf(dockerfile);
    const order = {
      context,
      dockerfile: "Dockerfile",
      layers: "test",
      args: {},
      refuseImage: () => undefined,
      timeoutMs: 60_000,
    };
    return setUps.build(spec, key, order, AbortSignal.timeout(60_000));
  };
  const fetched = await build(`FROM ${spec.image}\nADD http://127.0.0.1:${port}/x /x\n`);
  expect(fetched.failed).toMatch(/^line 2 of Dockerfile: ADD http.* would be fetched by the Docker engine/);
  // What a base image makes its builds do.
  const trigger = `longhaul-test-${newKey()}:1`;
  const base = await sandboxes.docker.createContainer({ Image: spec.image });
  const changes = `ONBUILD ADD http://127.0.0.1:${port}/y /y`;
  await base.commit({ repo: trigger.split(":")[0] ?? "", tag: "1", changes });
  await base.remove({ v: true });
  onTestFinished(() => sandboxes.docker.getImage(trigger).remove({ force: true }) as Promise<void>);
  expect((await build(`FROM ${trigger}\n`)).failed).toMatch(/has the trigger ONBUILD ADD/);
  expect(asked).toBe(0);
  const order = {
    context: contextOf(`FROM ${spec.image}\n`),
    dockerfile: "Dockerfile",
    layers: "test",
    args: {},
    timeoutMs: 60_000,
  };
  const refuseImage = (image: string) => `${image} may not be used`;
  expect((await setUps.build(spec, key, { ...order, refuseImage }, AbortSignal.timeout(60_000))).failed).toBe(
    `line 1 of Dockerfile: ${spec.image} may not be used`,
  );

  const look =
    "ls /sys/class/net > /opt/seen; sleep 1; cat /sys/fs/cgroup/pids.max /sys/fs/cgroup/pids/pids.max >> /opt/seen || true";
  expect(await build(`FROM ${spec.image}\nRUN ${look}\n`)).not.toHaveProperty("failed");
  const taken = await setUps.take(spec, key);
  expect((await bash(taken!, "cat /opt/seen")).out.split("\n")).toEqual(["lo", "77", ""]);
  const failed = await build(`FROM ${spec.image}\nRUN exit 3\n`);
  expect(failed.failed).toMatch(/code: 3.*RUN has no network with sandbox.network: bridge/);
});

/** Sends frames and packets in each way that passes a firewall of the namespace, on each interface; prints what was taken. */
const FRAMES = `import socket
taken = []
frame = b"\\xff" * 12 + b"\\x08\\x00" + b"x" * 50
def attempt(name, send):
    try:
        send()
        taken.append(name)
    except OSError:
        pass
def packet(interface, bypass):
    peer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    if bypass:
        peer.setsockopt(263, 20, 1)
    peer.bind((interface, 0x0800))
    peer.send(frame)
def raw():
    peer = socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)
    peer.sendto(frame, ("192.0.2.1", 0))
for number, interface in socket.if_nameindex():
    if interface != "lo":
        attempt(f"frame on {interface}", lambda: packet(interface, False))
        attempt(f"bypass on {interface}", lambda: packet(interface, True))
        attempt(f"data path on {interface}", lambda: socket.socket(44, socket.SOCK_RAW, 0))
attempt("raw packet", raw)
print("taken", taken)
`;

test.each(["bridge", "none", "listed"] as const)(
  "no frame leaves a build or a sandbox with network: %s",
  async (network) => {
    const spec = sandboxes.spec({ network });
    const sandbox = await sandboxes.host.open(spec);
    const program = Buffer.from(FRAMES).toString("base64");
    const look = `echo ${program} | base64 -d > /tmp/frames.py; python3 /tmp/frames.py`;
    expect((await bash(sandbox, look)).out).toBe("taken []\n");
    const built = await sandboxes.host.setUps!.build(
      spec,
      newKey(),
      {
        context: contextOf(`FROM ${spec.image}\nRUN ${look}; exit 3\n`),
        dockerfile: "Dockerfile",
        layers: "test",
        args: {},
        refuseImage: () => undefined,
        timeoutMs: 60_000,
      },
      AbortSignal.timeout(60_000),
    );
    expect(built.output).toContain("taken []");
    await sandboxes.host.remove(spec.sessionId);
  },
);

test("what a build left without a name goes after a day, and not before", async () => {
  const spec = sandboxes.spec({ network: "none" });
  const { docker } = sandboxes;
  const left = async (agoMs: number) => {
    const made = new Date(Date.now() - agoMs).toISOString();
    const answer = await docker.buildImage(
      contextOf(`FROM ${spec.image}\nRUN true ${newKey()}\n`) as unknown as NodeJS.ReadableStream,
      { labels: { ...(await keptLabels(docker, spec)), "longhaul.setup": made }, rm: true },
    );
    let said = "";
    for await (const piece of answer) said += String(piece);
    return /"ID":"([^"]+)"/.exec(said)?.[1] ?? "";
  };
  const old = await left(2 * DAY_MS);
  const fresh = await left(60_000);
  onTestFinished(() => docker.getImage(fresh).remove({ force: true }) as Promise<void>);
  // Another file's worker may have done it before.
  await sandboxes.host.removeUnused();
  await expect(docker.getImage(old).inspect()).rejects.toMatchObject({ statusCode: 404 });
  await docker.getImage(fresh).inspect();
});

test("a kept image goes with its deleted session on each host, unless that was started again", async () => {
  const { docker, host } = sandboxes;
  const { store } = database;
  const spec = sandboxes.spec({ network: "none" });
  const container = await docker.createContainer({ Image: spec.image });
  onTestFinished(() => container.remove({ v: true }) as Promise<void>);
  const [deleted, again, running] = [newKey(), newKey(), newKey()];
  for (const id of [deleted, again, running]) {
    await createSession(store, { id, task: "Build.", config: runConfig() });
    // An owner of their own: others' images count for nothing here.
    const labels = await keptLabels(docker, { ...spec, sessionId: id, ownerKey: running });
    const changes = Object.entries(labels).map(([name, value]) => `LABEL ${name}=${JSON.stringify(value)}`);
    await container.commit({ repo: "longhaul-setup", tag: id, pause: false, changes });
    onTestFinished(
      () =>
        docker
          .getImage(keptName(id))
          .remove({ force: true })
          .catch(() => undefined) as Promise<void>,
    );
  }
  for (const id of [deleted, again]) {
    await store.db
      .update(schema.sessions)
      .set({ status: "completed", endedAt: sql`now()` })
      .where(eq(schema.sessions.id, id));
    expect(await deleteFamily(store.db, await readFamily(store.db, id), undefined)).toMatchObject({
      kind: "deleted",
    });
  }
  await createSession(store, { id: again, task: "Build it again.", config: runConfig() });
  expect(await removeDeletedSetUps(store, host)).toEqual([
    `removed ${keptName(deleted)}, which kept what a project's set-up made`,
  ]);
  const left = await Promise.allSettled(
    [deleted, again, running].map((id) => docker.getImage(keptName(id)).inspect()),
  );
  expect(left.map(({ status }) => status)).toEqual(["rejected", "fulfilled", "fulfilled"]);
});

test("each owner has ten images of their own, and what a session made goes with it alone", async () => {
  const { docker, host } = sandboxes;
  const spec = sandboxes.spec({ network: "none" });
  const container = await docker.createContainer({ Image: spec.image });
  const kept = async (sessionId: string, ownerKey: string, agoMs: number) => {
    const labels = {
      ...(await keptLabels(docker, { ...spec, sessionId, ownerKey })),
      "longhaul.setup": new Date(Date.now() - agoMs).toISOString(),
    };
    const changes = Object.entries(labels).map(([name, value]) => `LABEL ${name}=${JSON.stringify(value)}`);
    const key = newKey();
    await container.commit({ repo: "longhaul-setup", tag: key, pause: false, changes });
    return keptName(key);
  };
  const [busy, quiet] = [newKey(), newKey()];
  const old = await kept(`${busy}-0`, quiet, DAY_MS);
  const all: string[] = [];
  for (let at = 0; at < 11; at += 1) all.push(await kept(`${busy}-${at}`, busy, 3_600_000 - at * 60_000));
  onTestFinished(async () => {
    await container.remove({ v: true });
    await Promise.allSettled([old, ...all].map((name) => docker.getImage(name).remove({ force: true })));
  });
  const there = async () => {
    const found = await Promise.allSettled([old, ...all].map((name) => docker.getImage(name).inspect()));
    return found.map(({ status }) => status === "fulfilled");
  };
  await host.removeUnused();
  const [quiets, oldest, ...others] = await there();
  expect([quiets, oldest, others.every(Boolean)]).toEqual([true, false, true]);
  expect(await host.setUps!.makers()).toEqual(expect.arrayContaining([`${busy}-0`, `${busy}-10`]));
  expect(await host.setUps!.forget(`${busy}-10`)).toHaveLength(1);
  expect((await there()).filter(Boolean)).toHaveLength(10);
});
