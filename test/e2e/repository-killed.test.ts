import { expect, test } from "vitest";
import { CANARY } from "../support/canary.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { gitIn, makeRemote, serveGit, onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { useDatabase } from "../support/test-database.ts";
import { emptyFolder } from "../support/empty-folder.ts";

const database = useDatabase(20);

test("a worker killed in the clone, before the push and after it leaves one commit, pushed once", async () => {
  const remote = makeRemote();
  const server = await serveGit(remote, CANARY);
  const folder = emptyFolder();
  const session = await startKillableSession(
    database,
    scriptedModel().calls("bash", { command: "echo mine > mine" }).says("Done."),
    {
      environment: { LONGHAUL_GIT_TOKEN: CANARY, LONGHAUL_GIT_FOLDER: folder },
      config: onRepository(`${server.origin}/acme/app.git`),
    },
  );
  for (const point of [
    server.hold("git-upload-pack", "before"),
    server.hold("git-receive-pack", "before"),
    server.hold("git-receive-pack", "after"),
  ]) {
    const worker = await session.startWorker();
    await point.reached;
    await worker.kill();
    point.drop();
  }
  await session.startWorker();
  expect(await session.handle.result()).toMatchObject({ status: "completed", delivery: "done" });
  const branch = `longhaul/${session.id}`;
  expect(gitIn(remote.folder, "rev-list", "--count", `main..${branch}`)).toBe("1");
  const pushed = await session.dataOf("git:pushed");
  expect(pushed).toEqual([{ branch, commit: remote.at(branch), commits: 1 }]);
  await checkSession(session.place, session, { kills: 3 });
});
