/** Names that are no names, on their way to the real engine. */
import { describe, expect, it } from "vitest";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { useTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();

describe("a name that makes another path of the engine's API", () => {
  it.each(["", "../containers", "a/../../info", "."])("%j is refused here", async (name) => {
    const docker = connectDocker();
    await expect(docker.getImage(name).inspect()).rejects.toMatchObject({ statusCode: 400 });
    await expect(docker.getContainer(name).inspect()).rejects.toMatchObject({ statusCode: 400 });
  });
});

describe("a sandbox that the engine cannot make", () => {
  it.each([
    ["an image's name with capitals", { image: "Tools" }, /must be lowercase/],
    ["too little memory", { memoryBytes: 2 ** 20 }, /memory limit/i],
    ["more CPUs than there are", { cpus: 10_000 }, /CPUs/],
    ["an unknown runtime", { runtime: "no-such-runtime" }, /no-such-runtime/],
  ])("for %s ends the run with what to change", async (_what, changes, reason) => {
    await expect(sandboxes.host.open(sandboxes.spec(changes))).rejects.toMatchObject({
      type: "SandboxRefused",
      nonRetryable: true,
      message: expect.stringMatching(reason),
    });
  });
});
