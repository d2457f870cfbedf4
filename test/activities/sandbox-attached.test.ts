/** Sessions in a container that someone else owns: here the tests. What a whole run does there: test/commands/container.test.ts. */
import type Dockerode from "dockerode";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { withAttached } from "../../activities/sandbox/docker/attached.ts";
import { sandboxName } from "../../activities/sandbox/docker/profile.ts";
import type { SandboxHost } from "../../activities/sandbox/sandbox-host.ts";
import { inContainer } from "../support/in-container.ts";
import { bash, newId, useTestSandboxes } from "../support/test-sandboxes.ts";

const NAME = `longhaul-test-attached-${process.pid}`;
const SUPERVISORS = "ls -d /tmp/.longhaul-* 2>/dev/null | wc -l; pgrep -fc LONGHAUL_SUPERVISO[R]";

const sandboxes = useTestSandboxes();
let container: Dockerode.Container;
let host: SandboxHost;
const said: string[] = [];

const newHost = (): SandboxHost =>
  withAttached(sandboxes.newHost(), {
    docker: sandboxes.docker,
    isAllowed: true,
    say: (line) => said.push(line),
  });
const attachedSpec = () => sandboxes.spec({ container: { name: NAME, folder: "/srv/app" } });
/** How many sessions have a folder and a supervisor in the container. */
const traces = async () => (await inContainer(container, SUPERVISORS)).trim().split("\n").map(Number);

async function startContainer(): Promise<void> {
  container = await sandboxes.docker.createContainer({
    name: NAME,
    Image: inject("sandboxImage"),
    Entrypoint: ["sleep", "infinity"],
    User: "0:0",
    WorkingDir: "/srv/app",
  });
  await container.start();
}

beforeAll(async () => {
  host = newHost();
  await startContainer();
});
afterAll(async () => {
  await host.close();
  await container.remove({ force: true });
});

test("sessions share a container, each with its commands, which outlive a worker that closes", async () => {
  const [first, second] = [attachedSpec(), attachedSpec()];
  const [sandbox, other] = await Promise.all([host.open(first), host.open(second)]);
  expect(sandbox).toMatchObject({ container: NAME, network: { reach: "everything" } });
  expect((await bash(sandbox, "pwd; id -u; echo shared > file.txt")).out).toBe("/srv/app\n0\n");
  expect((await bash(other, "cat file.txt")).out).toBe("shared\n");
  const id = newId();
  await sandbox.start({ id, argv: ["sleep", "300"] });
  expect(await other.state(id)).toBeUndefined();
  expect(await traces()).toEqual([2, 2]);

  const later = newHost();
  const again = await later.open(first);
  expect(again.identity).toEqual(sandbox.identity);
  expect(await again.state(id)).toMatchObject({ kind: "running" });
  await later.close();
  await expect(again.list()).rejects.toThrow("the worker is stopping");
  expect(await sandbox.state(id)).toMatchObject({ kind: "running" });

  await host.remove(first.sessionId);
  await expect(sandbox.list()).rejects.toThrow("the session has left the container");
  expect(await inContainer(container, "pgrep -fc 'sleep 30[0]'")).toBe("0\n");
  expect(await traces()).toEqual([1, 1]);
  expect((await bash(other, "cat file.txt")).out).toBe("shared\n");
  await host.remove(second.sessionId);
  expect(await traces()).toEqual([0, 0]);
  expect(await host.volume(second.sessionId)).toBeUndefined();
  expect(said.filter((line) => line === `sandbox: left ${NAME}`)).toHaveLength(2);
});

test("a supervisor that was killed is started again, and its commands are lost", async () => {
  const spec = attachedSpec();
  const sandbox = await host.open(spec);
  const id = newId();
  await sandbox.start({ id, argv: ["sleep", "301"] });
  await inContainer(container, "pkill -KILL -f LONGHAUL_SUPERVISO[R]");
  const again = await host.open(spec);
  expect(again.identity.boot).not.toBe(sandbox.identity.boot);
  expect(await again.state(id)).not.toMatchObject({ kind: "running" });
  await expect(sandbox.list()).rejects.toThrow("the supervisor was started again");
  expect((await bash(again, "echo goes on")).out).toBe("goes on\n");
  await host.remove(spec.sessionId);
  expect(await traces()).toEqual([0, 0]);
  expect(await inContainer(container, "pgrep -fc 'sleep 30[1]'")).toBe("0\n");
});

test("a container that stopped, or replaced the session's, is refused and left as it is", async () => {
  const spec = attachedSpec();
  await host.open(spec);
  await container.stop({ t: 0 });
  await expect(host.open(spec)).rejects.toMatchObject({
    type: "ContainerUnavailable",
    nonRetryable: true,
    message: expect.stringContaining("it is not running (exited)"),
  });
  await container.remove();
  await startContainer();
  await expect(host.open(spec)).rejects.toMatchObject({
    type: "ContainerUnavailable",
    message: expect.stringContaining("it is not the container of that name that the session worked in"),
  });
  expect(await traces()).toEqual([0, 0]);
  await host.remove(spec.sessionId);
  expect(await host.volume(spec.sessionId)).toBeUndefined();
  expect((await container.inspect()).State.Running).toBe(true);
});

test.each([
  ["a folder that is not there", { folder: "/nowhere" }, "it has no folder /nowhere"],
  ["one that its user may not write to", { folder: "/sys" }, "its user (uid 0) may not write to /sys"],
  [
    "another id",
    { folder: "/srv/app", id: "0".repeat(64) },
    "it is not the container of that name that was meant",
  ],
])("is refused for %s", async (_, settings, why) => {
  const spec = { ...attachedSpec(), container: { name: NAME, ...settings } };
  await expect(host.open(spec)).rejects.toMatchObject({
    type: "ContainerUnavailable",
    message: expect.stringContaining(why),
  });
  await host.remove(spec.sessionId);
});

test("a sandbox of ours is no container of someone else", async () => {
  const own = sandboxes.spec();
  await host.open(own);
  const spec = sandboxes.spec({ container: { name: sandboxName(own.sessionId), folder: "/workspace" } });
  await expect(host.open(spec)).rejects.toMatchObject({
    type: "ContainerUnavailable",
    message: expect.stringContaining("it is a sandbox of Longhaul's own"),
  });
});
