/** Sandboxes that are killed, removed or stopped from outside during a command. */
import { eq } from "drizzle-orm";
import { describe, expect, it } from "vitest";
import { checkpoints, sandboxes } from "../../activities/store/schema/index.ts";
import { eventually, type StartOptions, useAgent } from "../support/agent-harness.ts";
import { removeAll, untilItRuns } from "../support/lost-sandbox.ts";
import { call, scriptedModel } from "../support/scripted-model.ts";
import { callRows, resultTexts, noticesOf } from "../support/stored.ts";
import { untilStepSaved } from "../support/waits.ts";

const agent = useAgent();

const SLEEPS = "echo line >> n.txt; echo begun; sleep 4711";
const bash = (command: string) => call("bash", { command });
/** A file, a command that does not end, a look. */
const script = (look = "cat kept.txt n.txt") =>
  scriptedModel()
    .calls("write_file", { path: "kept.txt", content: "kept\n" })
    .answers(bash(SLEEPS))
    .answers(bash(look))
    .says("Done.");

/** A guarded network takes time to set up, and is not needed here. */
const offline: StartOptions = {
  config: { sandbox: { network: "none" } },
};

describe.concurrent("a sandbox that is lost during a command", () => {
  it.each([
    ["killed", (sandbox: { kill(): Promise<unknown> }) => sandbox.kill()],
    ["removed", (sandbox: { remove(options: object): Promise<unknown> }) => sandbox.remove({ force: true })],
  ])(
    "by being %s: the outcome is unknown, the files are there, nothing runs again",
    { tags: ["R13"] },
    async (_, lose) => {
      const session = await agent.start(script(), offline);
      await untilItRuns(agent, session, "sleep 4711");
      await lose(agent.docker.getContainer(`longhaul-${session.id}`));
      expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 4 });
      const [, slept, looked] = await resultTexts(agent.database.store, session.id);
      expect(slept).toMatch(/not known how this command ended[^]*was not run again/);
      expect(looked).toBe("kept\nline");
      const calls = await callRows(agent.database.store, session.id);
      expect(calls.map((row) => row.status)).toEqual(["completed", "unknown", "completed"]);
      expect(await noticesOf(agent.database.store, session.id)).toEqual([
        expect.stringMatching(
          /restarted by something else. The files in \/workspace are as they were. All processes/,
        ),
      ]);
      expect(await session.dataOf("sandbox:lost")).toHaveLength(1);
      // The notice is at the boundary: after the results, before the next answer.
      const types = session.model.requests[2]?.items.map(({ type }) => type);
      expect(types?.slice(-2)).toEqual(["result", "message"]);
    },
  );

  it(
    "with its volume: files come from the last save, and a notice names what is gone",
    { tags: ["R14"] },
    async () => {
      const session = await agent.start(script("cat kept.txt; ls"), offline);
      await untilItRuns(agent, session, "sleep 4711");
      await untilStepSaved(agent.database.store, session.id, 1);
      await removeAll(agent, session);
      expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 4 });
      const [, slept, looked] = await resultTexts(agent.database.store, session.id);
      expect(slept).toMatch(/not known how this command ended, or whether it began/);
      expect(looked).toBe("kept\nkept.txt");
      const [notice, ...more] = await noticesOf(agent.database.store, session.id);
      expect(more).toEqual([]);
      expect(notice).toContain("are as saved after step 1.");
      expect(notice).toContain("What the calls of step 2 had done by then is lost too.");
      expect(notice).toContain("running processes");
    },
  );

  it(
    "with its volume and all saves: the run fails, and does not continue in an empty folder",
    { tags: ["R14"] },
    async () => {
      const session = await agent.start(script(), offline);
      await untilItRuns(agent, session, "sleep 4711");
      await untilStepSaved(agent.database.store, session.id, 1);
      const { db } = agent.database.store;
      await db.delete(checkpoints).where(eq(checkpoints.sessionId, session.id));
      await db.update(sandboxes).set({ savedStep: null }).where(eq(sandboxes.sessionId, session.id));
      await removeAll(agent, session);
      await expect(session.handle.result()).rejects.toMatchObject({
        cause: {
          type: "WorkspaceLost",
          message: expect.stringContaining("what steps 1 to 1 wrote is lost") as string,
        },
      });
      expect(session.model.requests).toHaveLength(2);
      // Resumed, it gets one notice.
      await (await session.resume("Go on.", "on")).result();
      const notices = await noticesOf(agent.database.store, session.id);
      expect(notices).toEqual([expect.stringContaining("before its files were ever saved")]);
    },
  );

  it("by being paused: it is resumed, and the command is followed to its true end", async () => {
    const session = await agent.start(
      scriptedModel().answers(bash("echo line >> n.txt; sleep 4; echo woken; cat n.txt")).says("Done."),
      offline,
    );
    await untilItRuns(agent, session, "sleep 4");
    const sandbox = agent.docker.getContainer(`longhaul-${session.id}`);
    // A busy kernel does not freeze a group at once, and the engine reports that.
    await eventually("it is paused", () =>
      sandbox.pause().then(
        () => true,
        () => false,
      ),
    );
    expect(await session.handle.result()).toMatchObject({ status: "completed", steps: 2 });
    expect(await resultTexts(agent.database.store, session.id)).toEqual([
      expect.stringMatching(/^woken\nline/),
    ]);
    expect(await noticesOf(agent.database.store, session.id)).toEqual([]);
  });
});

it("a file that is too large to be saved is reported once to the model and to the person", async () => {
  const session = await agent.run(
    scriptedModel()
      .answers(bash("truncate -s 65M big.bin; echo one > small.txt"))
      .answers(bash("sleep 2; echo two > small.txt"))
      .answers(bash("sleep 2; echo three > small.txt"))
      .says("Done."),
    offline,
  );
  expect(await noticesOf(agent.database.store, session.id)).toEqual([
    expect.stringContaining(
      'Files of more than 64 MiB are not saved in Postgres: "big.bin" (65 MiB). Set LONGHAUL_STORE to keep them.',
    ),
  ]);
  expect(await session.dataOf("sandbox:left-out")).toEqual([
    { count: 1, files: [{ path: "big.bin", bytes: 65 * 2 ** 20, reason: "too-large" }] },
  ]);
});
