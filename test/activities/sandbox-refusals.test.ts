/** Sandboxes that cannot be: invalid names, settings that the engine does not accept, an image without Python. */
import { createHash, randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import Dockerode from "dockerode";
import { pack } from "tar-stream";
import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { checkSandbox } from "../../client/setup/sandbox-check.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();

it.each(["", "../containers", "a/../../info", "."])(
  "a name that leads to another path of the engine's API (%j) is refused",
  async (name) => {
    const docker = connectDocker();
    await expect(docker.getImage(name).inspect()).rejects.toMatchObject({ statusCode: 400 });
    await expect(docker.getContainer(name).inspect()).rejects.toMatchObject({ statusCode: 400 });
  },
);

it.each([
  ["an image's name with capitals", { image: "Tools" }, /must be lowercase/],
  ["too little memory", { memoryBytes: 2 ** 20 }, /memory limit/i],
  ["more CPUs than there are", { cpus: 10_000 }, /CPUs/],
  ["an unknown runtime", { runtime: "no-such-runtime" }, /no-such-runtime/],
])(
  "a sandbox that the engine cannot create because of %s ends the run with what to change",
  async (_what, changes, reason) => {
    await expect(sandboxes.host.open(sandboxes.spec(changes))).rejects.toMatchObject({
      type: "SandboxRefused",
      nonRetryable: true,
      message: expect.stringMatching(reason),
    });
  },
);

const docker = new Dockerode();
const image = `longhaul-without-python-${randomBytes(3).toString("hex")}`;
const foreign = `${image}-foreign`;
beforeAll(async () => {
  const { Arch } = await docker.version();
  await load(image, Arch);
  await load(foreign, Arch === "arm64" ? "amd64" : "arm64");
});
afterAll(async () => {
  for (const name of [image, foreign]) await docker.getImage(name).remove({ force: true });
});

/** An image with nothing but a folder, in the form of `docker save`. */
async function load(name: string, architecture: string): Promise<void> {
  const layer = await archive({ "workspace/": "" });
  const digest = createHash("sha256").update(layer).digest("hex");
  const config = {
    architecture,
    os: "linux",
    config: {},
    rootfs: { type: "layers", diff_ids: [`sha256:${digest}`] },
  };
  const manifest = [{ Config: "config.json", RepoTags: [`${name}:latest`], Layers: ["layer.tar"] }];
  const image = await archive({
    "config.json": JSON.stringify(config),
    "layer.tar": layer,
    "manifest.json": JSON.stringify(manifest),
  });
  const loading = await docker.loadImage(Readable.from([image]));
  await new Promise<void>((resolve, reject) => {
    docker.modem.followProgress(loading, (error) => (error ? reject(error) : resolve()));
  });
}

function archive(files: Readonly<Record<string, string | Buffer>>): Promise<Buffer> {
  const tar = pack();
  for (const [name, content] of Object.entries(files))
    if (name.endsWith("/")) tar.entry({ name, type: "directory", mode: 0o777 });
    else tar.entry({ name }, content);
  tar.finalize();
  return buffer(tar);
}

it("an image without Python is refused by name, without another attempt", async () => {
  await expect(sandboxes.host.open(sandboxes.spec({ image }))).rejects.toMatchObject({
    type: "SandboxRefused",
    nonRetryable: true,
    message: expect.stringContaining("has no python3") as string,
  });
});

it("an image of another architecture is refused as that, not for its lack of Python", async () => {
  await expect(sandboxes.host.open(sandboxes.spec({ image: foreign }))).rejects.toMatchObject({
    type: "SandboxRefused",
    message: expect.stringMatching(/is built for (arm64|amd64), this Docker engine runs/) as string,
  });
});

it.each([
  [
    "a link",
    "rm -rf /workspace; mkdir /srv/w; ln -s /srv/w /workspace",
    /\/workspace is a link there \(to "\/srv\/w"\)/,
  ],
  ["a link to nothing", "rm -rf /workspace; ln -s /nowhere /workspace", /\/workspace is a link there/],
  ["a file", "rm -rf /workspace; touch /workspace", /\/workspace is no folder there/],
  ["no folder for what is temporary", "rm -rf /tmp; touch /tmp", /\/tmp is no folder there/],
])(
  "an image in which the workspace's place is %s is refused before a sandbox is made",
  async (_, change, why) => {
    const odd = `${image}-odd`;
    const base = await docker.createContainer({
      Image: inject("sandboxImage"),
      User: "0:0",
      Entrypoint: ["sh", "-c", change],
      Cmd: [],
      WorkingDir: "/",
    });
    try {
      await base.start();
      await base.wait();
      await base.commit({ repo: odd });
      const spec = sandboxes.spec({ image: odd });
      const refused = {
        type: "SandboxRefused",
        nonRetryable: true,
        message: expect.stringMatching(why) as string,
      };
      await expect(sandboxes.host.refuseUnfit?.(spec)).rejects.toMatchObject(refused);
      await expect(sandboxes.host.open(spec)).rejects.toMatchObject(refused);
      expect(await sandboxes.host.sessions()).not.toContain(spec.sessionId);
    } finally {
      await base.remove({ force: true });
      await docker.getImage(odd).remove({ force: true });
    }
  },
);

it("an image whose Python is too old is refused before a sandbox is made, with both versions", async () => {
  const old = `${image}-old`;
  // Python itself, but it takes itself for another version.
  const pretend = `#!/bin/sh
shift 3
exec python3.real -I -S -c "import sys; sys.version_info = (3, 6, 15); exec(sys.argv[1])" "$@"`;
  const base = await docker.createContainer({
    Image: inject("sandboxImage"),
    User: "0:0",
    Entrypoint: [
      "sh",
      "-c",
      `cd /usr/bin && mv python3 python3.real && printf '%s' "$PRETEND" > python3 && chmod 755 python3`,
    ],
    Env: [`PRETEND=${pretend}`],
    Cmd: [],
    WorkingDir: "/",
  });
  try {
    await base.start();
    await base.wait();
    await base.commit({ repo: old });
    await expect(sandboxes.host.refuseUnfit?.(sandboxes.spec({ image: old }))).rejects.toMatchObject({
      type: "SandboxRefused",
      nonRetryable: true,
      message: expect.stringMatching(
        /cannot be a sandbox: its python3 is version 3\.6 here, and Longhaul needs 3\.9 or newer; nothing was asked or run/,
      ) as string,
    });
  } finally {
    await base.remove({ force: true });
    await docker.getImage(old).remove({ force: true });
  }
});

it("an image that does not exist or runs no Python is refused before a sandbox is made", async () => {
  for (const [name, type] of [
    [image, "SandboxRefused"],
    [foreign, "SandboxRefused"],
    [`${image}-nowhere`, "ImageMissing"],
  ] as const)
    await expect(sandboxes.host.refuseUnfit?.(sandboxes.spec({ image: name }))).rejects.toMatchObject({
      type,
    });
  await expect(sandboxes.host.refuseUnfit?.(sandboxes.spec())).resolves.toBeUndefined();
});

it("nobody's sandbox is removed with another session, whatever labels its image has", async () => {
  const victim = sandboxes.spec();
  const labelled = `${image}-labelled`;
  const base = await docker.createContainer({ Image: victim.image, Entrypoint: ["true"] });
  const [repo, changes] = [labelled, `LABEL longhaul.guard=${victim.sessionId} longhaul.setup.session=x`];
  await base.commit({ repo, changes: [changes] });
  await base.remove();
  try {
    const other = await sandboxes.host.open(sandboxes.spec({ image: labelled }));
    await sandboxes.host.open(victim);
    await sandboxes.host.remove(victim.sessionId);
    const found = await docker.getContainer(other.container).inspect();
    expect(found.Config.Labels).toMatchObject({ "longhaul.guard": victim.sessionId });
    expect(found.State.Running).toBe(true);
  } finally {
    await sandboxes.dispose();
    await docker.getImage(labelled).remove({ force: true });
  }
});

it("an image's environment directs neither the supervisor nor the worker's connection to it", async () => {
  const directed = `${image}-directed`;
  const attached = { home: "/tmp/h", workspace: "/tmp", mark: "m", number: 1 };
  const base = await docker.createContainer({
    Image: inject("sandboxImage"),
    Entrypoint: ["true"],
    Env: [
      `LONGHAUL_ATTACHED=${JSON.stringify(attached)}`,
      "LONGHAUL_HOME=/tmp/h",
      "LONGHAUL_EGRESS=token",
      "LONGHAUL_SOCKET=/tmp/h/control.sock",
      "LONGHAUL_CONNECT_SECONDS=soon",
    ],
  });
  await base.commit({ repo: directed });
  await base.remove();
  try {
    const sandbox = await sandboxes.host.open(sandboxes.spec({ image: directed }));
    expect((await bash(sandbox, "id -u; pwd; env | grep -c LONGHAUL_EGRESS")).out).toBe(
      "1000\n/workspace\n0\n",
    );
  } finally {
    await sandboxes.dispose();
    await docker.getImage(directed).remove({ force: true });
  }
});

it("what doctor measures in is nobody's sandbox, whatever a session is called", async () => {
  const spec = sandboxes.spec({ sessionId: `doctor-${process.pid}` });
  const { container } = await sandboxes.host.open(spec);
  const { isolation } = await checkSandbox({
    image: spec.image,
    guardImage: undefined,
    sandbox: { network: "none", guard: "required", allow: [] },
  });
  expect(isolation.found).not.toContain("not measured");
  expect((await docker.getContainer(container).inspect()).State.Running).toBe(true);
});
