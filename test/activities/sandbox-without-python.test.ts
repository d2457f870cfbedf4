/** What an image needs to be a sandbox. */
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import Dockerode from "dockerode";
import { pack } from "tar-stream";
import { afterAll, beforeAll, expect, it } from "vitest";
import { useTestSandboxes } from "../support/test-sandboxes.ts";

const docker = new Dockerode();
const image = `longhaul-without-python-${randomBytes(3).toString("hex")}`;
const sandboxes = useTestSandboxes();
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

it("an image without Python is refused by name, and nothing is tried again", async () => {
  await expect(sandboxes.host.open(sandboxes.spec({ image }))).rejects.toMatchObject({
    type: "SandboxRefused",
    nonRetryable: true,
    message: expect.stringContaining("has no python3") as string,
  });
});
