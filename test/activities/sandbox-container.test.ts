import Dockerode from "dockerode";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDockerHost, createSurroundings } from "../../activities/sandbox/docker/docker.ts";
import {
  CACHE_LABEL,
  cacheName,
  createOptions,
  sandboxName,
} from "../../activities/sandbox/docker/profile.ts";
import { differences } from "../../activities/sandbox/docker/profile-differences.ts";
import { SandboxLost } from "../../activities/sandbox/sandbox.ts";
import {
  bash,
  createTestSandboxes,
  newId,
  type TestSandboxes,
  waitUntil,
} from "../support/test-sandboxes.ts";

let sandboxes: TestSandboxes;
/** The same image by another name. */
const OTHER_IMAGE = `longhaul-test-other:${process.pid}`;
beforeAll(async () => {
  sandboxes = createTestSandboxes();
  const [repo = "", tag = ""] = OTHER_IMAGE.split(":");
  await sandboxes.docker.getImage(sandboxes.spec().image).tag({ repo, tag });
});
afterAll(async () => {
  await sandboxes.dispose();
  await sandboxes.docker.getImage(OTHER_IMAGE).remove();
});

const thrownBy = async (promise: Promise<unknown>): Promise<unknown> =>
  await promise.then(
    () => "nothing was thrown",
    (error: unknown) => error,
  );

test("a volume that somebody else made under the name of ours is neither used nor changed", async () => {
  const cache = newId();
  const spec = sandboxes.spec({ cache });
  const cases = [
    [sandboxName(spec.sessionId), {}],
    [sandboxName(spec.sessionId), { "longhaul.session": "another" }],
    [cacheName(cache), {}],
    [cacheName(cache), { [CACHE_LABEL]: "another" }],
  ] as const;
  for (const [Name, Labels] of cases) {
    await sandboxes.docker.createVolume({ Name, Labels });
    expect(await thrownBy(sandboxes.host.open(spec))).toMatchObject({ type: "SandboxRefused" });
    expect((await sandboxes.docker.getVolume(Name).inspect()).Labels ?? {}).toEqual(Labels);
    await sandboxes.docker.getVolume(Name).remove();
  }
});

test("a sandbox matches the profile, and its commands have no capabilities", { tags: ["R52"] }, async () => {
  const spec = sandboxes.spec();
  const sandbox = await sandboxes.host.open(spec);
  const found = await sandboxes.docker.getContainer(sandbox.container).inspect();
  expect(differences(found, spec, await createSurroundings(sandboxes.docker, "")(found))).toEqual([]);
  expect(found.Config.Labels).toMatchObject({ "longhaul.session": spec.sessionId });
  const { out } = await bash(
    sandbox,
    "id -u; grep -E '^(CapPrm|CapEff|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status | tr -s '\\t' ' '",
  );
  expect(out.split("\n")).toEqual([
    "1000",
    "CapPrm: 0000000000000000",
    "CapEff: 0000000000000000",
    "CapAmb: 0000000000000000",
    "NoNewPrivs: 1",
    "Seccomp: 2",
    "",
  ]);
});

test("an image named by its digest is used and reported", async () => {
  const { Id: image } = await sandboxes.docker.getImage(sandboxes.spec().image).inspect();
  const sandbox = await sandboxes.host.open(sandboxes.spec({ image }));
  expect(sandbox.identity.image).toBe(image);
  const missing = sandboxes.spec({ image: `sha256:${"0".repeat(64)}` });
  await expect(sandboxes.host.open(missing)).rejects.toMatchObject({ type: "ImageMissing" });
});

test.each([
  ["another user", { User: "1000" }],
  ["privileged", { HostConfig: { Privileged: true } }],
  ["a host folder", { HostConfig: { Binds: ["/etc:/host-etc"] } }],
  ["an additional capability", { HostConfig: { CapAdd: ["SETGID", "SETUID", "SYS_ADMIN"] } }],
  ["no limit on processes", { HostConfig: { PidsLimit: 0 } }],
  ["the host's network", { HostConfig: { NetworkMode: "host" } }],
  [
    "another seccomp profile",
    { HostConfig: { SecurityOpt: ["no-new-privileges:true", "seccomp=unconfined"] } },
  ],
  ["another image", { Image: OTHER_IMAGE }],
  ["another environment", { Env: ["LONGHAUL_SUPERVISOR=pass", "LD_PRELOAD=/workspace/x.so"] }],
  ["an additional group", { HostConfig: { GroupAdd: ["0"] } }],
  ["a device rule", { HostConfig: { DeviceCgroupRules: ["c 1:1 rwm"] } }],
  ["another size of shared memory", { HostConfig: { ShmSize: 2 ** 30 } }],
  ["a kernel setting", { HostConfig: { Sysctls: { "kernel.msgmax": "8192" } } }],
  ["another session's label", { Labels: { "longhaul.session": "someone-else" } }],
])(
  "a sandbox with %s is refused, and nothing is run in it",
  { tags: ["R52"] },
  async (_, { HostConfig: host = {}, ...changes }: Dockerode.ContainerCreateOptions) => {
    const spec = sandboxes.spec();
    const options = createOptions(spec, new Date());
    const made = await sandboxes.docker.createContainer({
      ...options,
      ...changes,
      HostConfig: { ...options.HostConfig, ...host },
    });
    expect(await thrownBy(sandboxes.host.open(spec))).toMatchObject({
      type: "SandboxRefused",
      nonRetryable: true,
    });
    expect((await made.inspect()).State.Running).toBe(false);
    await made.remove({ force: true, v: true });
  },
);

test("without a filter of system calls a sandbox is refused, or runs and reports that", async () => {
  // Such an engine gives every container what this one requests, and inspecting the container does not show it.
  const { docker } = sandboxes;
  const lax = new Dockerode();
  lax.getContainer = (id) => {
    const container = docker.getContainer(id);
    const inspect = container.inspect.bind(container) as () => Promise<Dockerode.ContainerInspectInfo>;
    container.inspect = (async () => {
      const found = await inspect();
      return { ...found, HostConfig: { ...found.HostConfig, SecurityOpt: ["no-new-privileges:true"] } };
    }) as typeof container.inspect;
    return container;
  };
  lax.createContainer = (async ({ HostConfig: asked, ...options }: Dockerode.ContainerCreateOptions) => {
    const SecurityOpt = [...(asked?.SecurityOpt ?? []), "seccomp=unconfined"];
    const { id } = await docker.createContainer({ ...options, HostConfig: { ...asked, SecurityOpt } });
    return lax.getContainer(id);
  }) as Dockerode["createContainer"];
  const host = createDockerHost({ docker: lax, name: "lax" });
  try {
    const spec = sandboxes.spec();
    await expect(host.open(spec)).rejects.toMatchObject({
      type: "SandboxUnguarded",
      message: expect.stringContaining("Seccomp is 0 instead of 2"),
    });
    const opened = await host.open({ ...spec, guard: "best-effort" });
    expect(opened.gaps).toEqual(["Seccomp is 0 instead of 2"]);
  } finally {
    await host.close();
  }
});

test("two workers that open at once get one sandbox, and its files outlive the container", async () => {
  const spec = sandboxes.spec();
  const other = sandboxes.newHost();
  const [mine, theirs] = await Promise.all([sandboxes.host.open(spec), other.open(spec)]);
  expect(theirs.container).toBe(mine.container);
  expect(mine.empty).toBe(true);
  await mine.files.write("f.txt", Buffer.from("kept"));
  expect(await theirs.files.read("f.txt")).toMatchObject({ ok: true, size: 4 });
  await sandboxes.docker.getContainer(mine.container).remove({ force: true });
  const again = await sandboxes.host.open(spec);
  expect(again.empty).toBe(false);
  expect(again.identity).toMatchObject({ volume: mine.identity.volume });
  expect(again.identity.boot).not.toBe(mine.identity.boot);
  expect(await again.files.read("f.txt")).toMatchObject({ ok: true, size: 4 });
});

test(
  "a sandbox removed during a command is lost, and a new one does not know the command",
  { tags: ["R13"] },
  async () => {
    const spec = sandboxes.spec();
    const sandbox = await sandboxes.host.open(spec);
    const id = newId();
    await sandbox.start({ id, argv: ["bash", "-c", "echo ran >> ran.txt; sleep 300"] });
    await waitUntil(async () => (await sandbox.files.stat("ran.txt")).ok, "it runs");
    const waiting = thrownBy(sandbox.wait(id));
    await sandboxes.docker.getContainer(sandbox.container).remove({ force: true });
    expect(await waiting).toBeInstanceOf(SandboxLost);
    expect(await thrownBy(sandbox.start({ id, argv: ["true"] }))).toBeInstanceOf(SandboxLost);
    const again = await sandboxes.host.open(spec);
    expect(await again.state(id)).toBeUndefined();
    expect((await bash(again, "cat ran.txt")).out).toBe("ran\n");
  },
);

test("a sandbox that was removed on purpose is lost to any caller that still has it open", async () => {
  const spec = sandboxes.spec();
  const sandbox = await sandboxes.host.open(spec);
  await sandboxes.host.remove(spec.sessionId);
  expect(await thrownBy(sandbox.state("s1c0"))).toBeInstanceOf(SandboxLost);
});

test("an aborted opening ends at once, and leaves nothing once the sandbox is removed", async () => {
  const spec = sandboxes.spec();
  const given = new AbortController();
  const opening = thrownBy(sandboxes.host.open(spec, given.signal));
  const reason = new Error("given up");
  given.abort(reason);
  expect(await opening).toBe(reason);
  await sandboxes.host.remove(spec.sessionId);
  expect(await sandboxes.host.volume(spec.sessionId)).toBeUndefined();
  const { statusCode } = (await thrownBy(
    sandboxes.docker.getContainer(sandboxName(spec.sessionId)).inspect(),
  )) as {
    statusCode: number;
  };
  expect(statusCode).toBe(404);
});

test(
  "after a container's restart running commands are lost, ended ones known, none runs again",
  { tags: ["R13"] },
  async () => {
    const spec = sandboxes.spec();
    const sandbox = await sandboxes.host.open(spec);
    const { state: ended } = await bash(sandbox, "echo done; exit 7");
    const id = newId();
    await sandbox.start({ id, argv: ["bash", "-c", "echo begun; echo ran >> ran.txt; sleep 300"] });
    await waitUntil(async () => ((await sandbox.state(id))?.outBytes ?? 0) > 0, "it has printed");
    await sandboxes.docker.getContainer(sandbox.container).kill();
    expect(await thrownBy(sandbox.wait(id))).toBeInstanceOf(SandboxLost);
    const again = await sandboxes.host.open(spec);
    expect(await again.start({ id, argv: ["bash", "-c", "echo ran >> ran.txt"] })).toMatchObject({
      kind: "lost",
      outKept: 6,
    });
    expect(Buffer.from(await again.read(id, "out", 0, 100)).toString()).toBe("begun\n");
    expect(await again.state(ended.id)).toEqual(ended);
    expect((await bash(again, "cat ran.txt")).out).toBe("ran\n");
  },
);

test("a stream that breaks while the sandbox runs is reopened; its caller does not notice", async () => {
  const spec = sandboxes.spec();
  const sandbox = await sandboxes.host.open(spec);
  const id = newId();
  await sandbox.start({ id, argv: ["bash", "-c", "while [ ! -e go ]; do sleep 0.02; done; exit 5"] });
  const waiting = sandbox.wait(id);
  // For the worker, the end of the relay is a broken stream.
  const relays = await sandboxes.relays(sandbox);
  expect(relays).toHaveLength(1);
  for (const relay of relays) process.kill(relay, "SIGKILL");
  await sandbox.files.write("go", Buffer.from(""));
  expect(await waiting).toMatchObject({ kind: "exited", exitCode: 5 });
});

test(
  "sandboxes and volumes are found by label in any state, and removed without touching others",
  { tags: ["R12"] },
  async () => {
    const [over, created, volumeOnly, alive] = [
      sandboxes.spec(),
      sandboxes.spec(),
      sandboxes.spec(),
      sandboxes.spec(),
    ];
    await sandboxes.host.open(over);
    await sandboxes.host.open(alive);
    await sandboxes.host.open(volumeOnly);
    await sandboxes.docker.getContainer(sandboxName(volumeOnly.sessionId)).remove({ force: true });
    await sandboxes.docker.createContainer(createOptions(created, new Date()));
    const stranger = await sandboxes.docker.createContainer({
      Image: over.image,
      Cmd: ["true"],
      name: `${sandboxName(over.sessionId)}-not-ours`,
    });
    const all = [over, created, volumeOnly, alive].map(({ sessionId }) => sessionId);
    expect(await sandboxes.host.sessions()).toEqual(expect.arrayContaining(all));
    for (const sessionId of all.slice(0, 3)) await sandboxes.host.remove(sessionId);
    for (const { sessionId } of [over, created, volumeOnly]) {
      await expect(sandboxes.docker.getContainer(sandboxName(sessionId)).inspect()).rejects.toMatchObject({
        statusCode: 404,
      });
      await expect(sandboxes.docker.getVolume(sandboxName(sessionId)).inspect()).rejects.toMatchObject({
        statusCode: 404,
      });
    }
    expect((await sandboxes.docker.getContainer(sandboxName(alive.sessionId)).inspect()).State.Running).toBe(
      true,
    );
    expect((await stranger.inspect()).State.Status).toBe("created");
    await stranger.remove();
    expect(await sandboxes.host.remove(over.sessionId)).toBeUndefined();
  },
);

test("a missing image is reported as permanent, a missing engine as temporary", async () => {
  expect(
    await thrownBy(sandboxes.host.open(sandboxes.spec({ image: "longhaul-no-such-image:0" }))),
  ).toMatchObject({
    type: "ImageMissing",
    nonRetryable: true,
  });
  const nowhere = createDockerHost({
    docker: new Dockerode({ socketPath: "/nonexistent/docker.sock" }),
    name: "x",
  });
  expect(await thrownBy(nowhere.open(sandboxes.spec()))).toMatchObject({
    type: "SandboxUnavailable",
    nonRetryable: false,
  });
});
