import { expect, inject, test } from "vitest";
import { packWorkspace } from "../../activities/store/workspace-pack.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { eventually } from "../support/eventually.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { resultTexts } from "../support/stored.ts";
import { runsIn } from "../support/in-container.ts";
import { useDatabase } from "../support/test-database.ts";
import { file } from "../support/workspace-file.ts";

const database = useDatabase(20);

const DOCKERFILE = `FROM ${inject("sandboxImage")}
RUN echo once >> /opt/first
RUN sleep 4.25
`;

test("a worker killed in an image's build and in a set-up's command repeats neither, and leaves nothing", async () => {
  const session = await startKillableSession(
    database,
    scriptedModel().calls("bash", { command: "cat /opt/first ~/second" }).says("Done."),
    {
      workspace: await packWorkspace([file("Dockerfile", DOCKERFILE)]),
      config: {
        sandbox: {
          build: { dockerfile: "Dockerfile", context: ".", args: {} },
          setup: {
            commands: ["echo once >> ~/second; sleep 4.75"],
            optional: false,
            keep: true,
            timeout: 60_000,
          },
        },
      },
    },
  );
  const { docker } = session.place;
  const sandboxId = async () => (await session.sandbox.inspect()).Id;
  /** Containers in which the engine runs a Dockerfile's commands. */
  const builders = async (id: string) => {
    const all = await docker.listContainers({ all: true });
    return all.filter(({ HostConfig: host }) => host.NetworkMode === `container:${id}`);
  };
  const first = await session.startWorker();
  const id = await eventually("a sandbox", () => sandboxId().catch(() => undefined));
  await eventually("the build's long command", async () => {
    const running = await builders(id);
    return running.some(({ Command: command }) => command.includes("sleep 4.25")) || undefined;
  });
  await first.kill();
  await eventually("the end of the build", async () => (await builders(id)).length === 0 || undefined);

  const second = await session.startWorker();
  const built = await session.until("setup:built");
  expect(built.data).toMatchObject({ kept: "made", output: expect.stringContaining("Using cache") });
  await eventually("the set-up's command", () => runsIn(session.sandbox, "sleep 4.75"));
  await second.kill();

  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed" });
  expect(await resultTexts(database.store, session.id)).toEqual(["once\nonce"]);
  expect(await session.dataOf("setup:built")).toHaveLength(1);
  expect(await session.dataOf("setup:ended")).toHaveLength(1);
  await checkSession(session.place, session, { kills: 2 });
  const mine = await docker.listContainers({ all: true });
  expect(mine.filter(({ Names: names }) => names.some((name) => name.includes(session.id)))).toEqual([]);
  await docker.getImage(`longhaul-setup:${built.data.image}`).remove();
});
