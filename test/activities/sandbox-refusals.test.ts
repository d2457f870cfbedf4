/** Sandboxes that cannot be: invalid names, settings that the engine does not accept, an image without Python. */
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import Dockerode from "dockerode";
import { pack } from "tar-stream";
import { afterAll, beforeAll, expect, it } from "vitest";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { useTestSandboxes } from "../support/test-sandboxes.ts";

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
beforeAll(async () => {
  const tar = pack();
  tar.entry({ name: "workspace", type: "directory", mode: 0o777 });
  tar.finalize();
  const made = await docker.importImage(Readable.from([await buffer(tar)]), { repo: image, fromSrc: "-" });
  await new Promise<void>((resolve, reject) => {
    made.on("end", resolve).on("error", reject).resume();
  });
});
afterAll(() => docker.getImage(image).remove({ force: true }));

it("an image without Python is refused by name, without another attempt", async () => {
  await expect(sandboxes.host.open(sandboxes.spec({ image }))).rejects.toMatchObject({
    type: "SandboxRefused",
    nonRetryable: true,
    message: expect.stringContaining("has no python3") as string,
  });
});
