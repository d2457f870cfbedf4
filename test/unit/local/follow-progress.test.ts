import { Readable } from "node:stream";
import Dockerode from "dockerode";
import { expect, it } from "vitest";
import { followProgress } from "../../../client/setup/sandbox-image/bootstrap-image.ts";

const progress = (...lines: object[]) => Readable.from(lines.map((line) => `${JSON.stringify(line)}\r\n`));

it("a build or a download that failed in the engine counts as failed", async () => {
  const docker = new Dockerode();
  await expect(
    followProgress(docker, progress({ stream: "Step 1/2" }, { stream: "done" })),
  ).resolves.toBeUndefined();
  const failed = progress(
    { stream: "Step 1/2" },
    { errorDetail: { code: 1 }, error: "a command returned 1" },
  );
  await expect(followProgress(docker, failed)).rejects.toThrow("a command returned 1");
});
