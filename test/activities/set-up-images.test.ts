/** Images of set-ups on a host: which of them a session may get, and which go. */
import { randomBytes } from "node:crypto";
import { Readable } from "node:stream";
import { pack } from "tar-stream";
import { expect, onTestFinished, test } from "vitest";
import { keptLabels, keptName } from "../../activities/sandbox/docker/set-up-images.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";

const sandboxes = useTestSandboxes();
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
        args: {},
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
