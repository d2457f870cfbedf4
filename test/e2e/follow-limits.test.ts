/** A forge that wants to be left alone: followers wait for as long as it says, and nobody with the same credential asks it meanwhile. */
import { expect, it, onTestFinished } from "vitest";
import { followSchema } from "../../activities/config/follow-settings.ts";
import { FOLLOW_SIGNALS, followWorkflowId } from "../../activities/contract/follow.ts";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { findFollow } from "../../activities/store/follows.ts";
import { startAgent } from "../support/agent-harness.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { eventually } from "../support/eventually.ts";
import { strictForge } from "../support/forge/strict-forge.ts";
import { onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";

const HOUR_MS = 3_600_000;

it.each(["github", "gitlab"] as const)("%s is not looked at before its limit is over", async (kind) => {
  const forge = await strictForge(kind, `limited-${kind}`);
  const git = createGitAccess({
    PATH: process.env["PATH"],
    LONGHAUL_GIT_TOKEN: forge.token,
    LONGHAUL_GIT_FOLDER: emptyFolder(),
  });
  const agent = await startAgent({ git, sanitizer: createSanitizer([forge.token]) });
  onTestFinished(() => agent.close());
  const follow = followSchema.parse({ on: true });
  const session = await agent.start(
    scriptedModel().calls("bash", { command: "echo 1 > one; git add -A; git commit -qm One" }).says("Done."),
    { config: onRepository(forge.url, { push: "end", pr: "ready", forge: kind, follow }) },
  );
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
  const row = () => findFollow(agent.database.store.db, session.id);
  await eventually("it was looked at", async () => (await row())?.lookedAt instanceof Date);

  let refusals = 0;
  forge.instead = () => {
    refusals += 1;
    return { status: 403, body: { message: "Slow down." }, headers: { "retry-after": "3600" } };
  };
  const follower = agent.client.workflow.getHandle(followWorkflowId(session.id));
  const look = async () => {
    const before = (await row())?.lookedAt?.getTime() ?? 0;
    await follower.signal(FOLLOW_SIGNALS.woken);
    await eventually("it has looked", async () => ((await row())?.lookedAt?.getTime() ?? 0) > before);
    const { lookedAt, nextLookAt, reason, state } = (await row()) ?? expect.fail("no row");
    return { waitsMs: (nextLookAt?.getTime() ?? 0) - (lookedAt?.getTime() ?? 0), reason, state };
  };
  const first = await look();
  expect(first).toMatchObject({ state: "following", reason: expect.stringContaining("Slow down.") });
  expect(first.waitsMs).toBeGreaterThanOrEqual(HOUR_MS);
  // A hook wakes it: it has nothing to ask, and waits for the rest.
  const second = await look();
  expect(second.reason).toMatch(/cannot be looked at: .* is not asked for \d+ s/);
  expect(second.waitsMs).toBeGreaterThan(HOUR_MS - 120_000);
  expect(refusals).toBe(1);
  await follower.terminate("the test is over");
});
