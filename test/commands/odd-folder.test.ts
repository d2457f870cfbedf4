/** The project in a folder whose name is not the same as in a URL. */
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { expect, inject, onTestFinished, test } from "vitest";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { birthOf } from "../../client/setup/processes.ts";
import { readState } from "../../client/setup/state.ts";
import { cloneProject } from "../support/clone-project.ts";
import { clientArgs, spawned } from "../support/program.ts";
import { removeBoxesOf } from "../support/remove-box.ts";
import { createDatabase, dropDatabase } from "../support/services.ts";

test("a folder with a blank, an umlaut, a # and a % migrates, starts services and does a task", async () => {
  const folder = cloneProject("my löng #1 100%20");
  const database = `odd_${randomUUID().replaceAll("-", "")}`;
  const databaseUrl = await createDatabase(inject("databaseServer"), database);
  onTestFinished(() => dropDatabase(inject("databaseServer"), database));
  onTestFinished(() => removeBoxesOf(connectDocker(), databaseUrl));
  onTestFinished(async () => {
    for (const { pid, born } of Object.values(readState(join(folder, ".longhaul")).services))
      if ((await birthOf(pid)) === born) process.kill(pid, "SIGKILL");
  });
  const { LONGHAUL_NO_SETUP: _, OPENAI_API_KEY: key, ...rest } = inject("commandsEnvironment");
  const environment = { ...rest, DATABASE_URL: databaseUrl, LONGHAUL_TASK_QUEUE: database };
  const run = (words: readonly string[], more: Readonly<Record<string, string | undefined>>) =>
    spawned(process.execPath, clientArgs(words, folder), {
      cwd: folder,
      env: { PATH: process.env["PATH"], ...environment, ...more },
    }).ended;
  const up = await run(["up", "--detach"], { OPENAI_BASE_URL: undefined });
  expect(up, up.err).toMatchObject({ code: 0, err: expect.stringContaining("rehearsal model") });
  const done = await run(["run", "say: Hello."], { OPENAI_API_KEY: key });
  expect(done, done.err).toMatchObject({ code: 0, out: "Hello.\n" });
  expect((await run(["down"], {})).code).toBe(0);
});
