/** Two installations on one engine may have sessions of the same id: what one of them has there is never used or removed by the other. */
import { expect, test } from "vitest";
import { createDockerHost } from "../../activities/sandbox/docker/docker.ts";
import { sandboxName } from "../../activities/sandbox/docker/profile.ts";
import { withAttached } from "../../activities/sandbox/docker/attached.ts";
import { bash, useTestSandboxes } from "../support/test-sandboxes.ts";
import { perFile } from "../support/per-file.ts";

const sandboxes = useTestSandboxes();
const hostOf = (id: string) =>
  perFile(
    async () => {
      const { docker } = sandboxes;
      const installation = async () => id;
      const host = createDockerHost({ docker, name: "test", installation });
      return withAttached(host, { docker, isAllowed: true, installation });
    },
    (host) => host.close(),
  );
const ours = hostOf("first");
const theirs = hostOf("second");

test("a session's running sandbox is refused to another installation, and not removed by it", async () => {
  const spec = sandboxes.spec();
  const { sessionId } = spec;
  const sandbox = await ours.open(spec);
  await bash(sandbox, "echo work > file.txt");

  await expect(theirs.open(spec)).rejects.toMatchObject({
    type: "SandboxRefused",
    message: expect.stringContaining("installation"),
  });
  expect(await theirs.volume(sessionId)).toBeUndefined();
  expect(await theirs.sessions()).not.toContain(sessionId);
  await theirs.remove(sessionId);

  expect((await bash(sandbox, "cat file.txt")).out).toBe("work\n");
  expect(await ours.volume(sessionId)).toBe(sandbox.identity.volume);
  expect(await ours.sessions()).toContain(sessionId);
  await ours.remove(sessionId);
  expect(await ours.volume(sessionId)).toBeUndefined();
});

test("what a session left of its files is another installation's neither to use nor to remove", async () => {
  const spec = sandboxes.spec();
  const { identity } = await ours.open(spec);
  await sandboxes.docker.getContainer(sandboxName(spec.sessionId)).remove({ force: true });

  await expect(theirs.open(spec)).rejects.toMatchObject({ type: "SandboxRefused" });
  await theirs.remove(spec.sessionId);

  expect(await ours.volume(spec.sessionId)).toBe(identity.volume);
  await ours.remove(spec.sessionId);
});

test("what a set-up kept serves only the installation that made it", async () => {
  const spec = sandboxes.spec();
  const key = `kept-${spec.sessionId}`;
  await ours.open(spec);
  await ours.setUps!.keep(spec, key);

  const same = { ...spec, sessionId: sandboxes.spec().sessionId };
  expect(await theirs.setUps!.take(same, key)).toBeUndefined();
  expect(await theirs.setUps!.makers()).not.toContain(spec.sessionId);
  expect(await theirs.setUps!.forget(spec.sessionId)).toEqual([]);

  await ours.remove(spec.sessionId);
  expect(await ours.setUps!.makers()).toContain(spec.sessionId);
  expect(await ours.setUps!.forget(spec.sessionId)).toHaveLength(1);
});

test("a session in somebody's container is left by its own installation alone", async () => {
  const { docker } = sandboxes;
  const place = sandboxes.spec();
  const someones = await docker.createContainer({
    Image: place.image,
    Entrypoint: ["sleep", "600"],
    HostConfig: { NetworkMode: "none" },
  });
  try {
    await someones.start();
    const { Name: name } = await someones.inspect();
    const spec = sandboxes.spec({ container: { name: name.slice(1), folder: "/workspace" } });
    const sandbox = await ours.open(spec);

    await expect(theirs.open(spec)).rejects.toMatchObject({ type: "SandboxRefused" });
    await theirs.remove(spec.sessionId);

    expect((await bash(sandbox, "echo here")).out).toBe("here\n");
    await ours.remove(spec.sessionId);
  } finally {
    await someones.remove({ force: true, v: true });
  }
});
