/** Work in another person's container, which is used as it is and left unchanged. */
import Dockerode from "dockerode";
import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { longhaul, starting, untilStatus } from "../support/commands/longhaul.ts";
import { inContainer } from "../support/in-container.ts";

const docker = new Dockerode();
const made: Dockerode.Container[] = [];
const running = async (name: string, command = "sleep infinity") => {
  const container = await docker.createContainer({
    name: `${name}-${process.pid}`,
    Image: inject("sandboxImage"),
    Entrypoint: ["bash", "-c", command],
    User: "0:0",
    WorkingDir: "/srv/app",
  });
  made.push(container);
  await container.start();
  return { name: `${name}-${process.pid}`, container };
};
/** Lines that a command prints in a container. */
const inside = async (container: Dockerode.Container, command: string) =>
  (await inContainer(container, command)).trim().split("\n");
/** A session's traces in the container: processes, files in /tmp. */
const left = (container: Dockerode.Container) =>
  inside(container, "ls -A /tmp | grep longhaul; ps -eo args | grep -E 'LONGHAUL|sleep 30' | grep -v grep");

let task: Awaited<ReturnType<typeof running>>;
beforeAll(async () => {
  task = await running("longhaul-test-task");
});
afterAll(() => Promise.all(made.map((container) => container.remove({ force: true }))));

test("works in its folder as its user, and leaves only its work", async () => {
  const lines = [
    "run: pwd; id -un; echo made > made.txt; (setsid sleep 300 &)",
    "run: sleep 301 & cat /srv/app/made.txt",
    "say: Done.",
  ];
  const { code, out, err } = await longhaul([
    "run",
    "--container",
    task.name,
    "--id",
    "container-task",
    lines.join("\n"),
  ]);
  expect({ code, out }, err).toEqual({ code: 0, out: "Done.\n" });
  expect(err).toContain("/srv/app");
  expect(await left(task.container)).toEqual([""]);
  expect(await inside(task.container, "cat made.txt; id -un")).toEqual(["made", "root"]);
  const { State: state, HostConfig: host } = await task.container.inspect();
  expect(state.Running).toBe(true);
  expect([host.Memory, host.PidsLimit ?? 0]).toEqual([0, 0]);

  // A resumed session finds it as its owner left it.
  await inside(task.container, "echo changed > made.txt");
  await longhaul(["say", "container-task", "run: cat made.txt; echo more > more.txt\nsay: Again."]);
  await untilStatus("container-task", ({ status, result }) => status === "completed" && result === "Again.");
  expect(await inside(task.container, "cat made.txt more.txt")).toEqual(["changed", "more"]);
  expect(await left(task.container)).toEqual([""]);
});

test("ends in order at its deadline, also without its client: 3, a trajectory, nothing left", async () => {
  const flags = ["--container", task.name, "--deadline", "10s", "--id", "container-deadline"];
  const order = ["run", ...flags, "run: sleep 302\nsay: Never."];
  const killed = starting(order);
  await eventually("the command runs", () => killed.err().includes("sleep 302"), 60_000);
  killed.kill("SIGKILL");
  await killed.ended;
  // The same command attaches to the session, and exits with its outcome.
  expect((await longhaul(order)).code).toBe(3);
  expect(await left(task.container)).toEqual([""]);
  const { out } = await longhaul(["export", "container-deadline", "--format", "atif"]);
  const steps = (JSON.parse(out) as { steps: readonly { source: string }[] }).steps;
  expect(steps.map(({ source }) => source)).toContain("agent");
});

test("an unusable container is refused before anything starts", async () => {
  const bare = await running("longhaul-test-bare", "rm -f /usr/bin/python3*; sleep infinity");
  await expect.poll(() => inside(bare.container, "ls /usr/bin/python3")).not.toEqual(["/usr/bin/python3"]);
  const refused = (...flags: string[]) => longhaul(["start", ...flags, "say: Never."]);
  const [none, python, both] = await Promise.all([
    refused("--container", "longhaul-nowhere"),
    refused("--container", bare.name),
    refused("--container", task.name, "--network", "none"),
  ]);
  expect([none.code, none.err]).toEqual([4, expect.stringContaining("there is none of that name")]);
  expect([python.code, python.err]).toEqual([4, expect.stringContaining("python3")]);
  expect([both.code, both.err]).toEqual([2, expect.stringContaining("--network")]);
});
