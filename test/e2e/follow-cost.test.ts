/** What a quiet day of a followed pull request costs, with all intervals divided by one factor: looks, actions of Temporal, calls of the forge. */
import { expect, it, onTestFinished } from "vitest";
import { followSchema } from "../../activities/config/follow-settings.ts";
import { followWorkflowId } from "../../activities/contract/follow.ts";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { findFollow } from "../../activities/store/follows.ts";
import { startAgent } from "../support/agent-harness.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { eventually } from "../support/eventually.ts";
import { strictForge } from "../support/forge/strict-forge.ts";
import { onRepository } from "../support/remotes.ts";
import { scriptedModel } from "../support/scripted-model.ts";

/** Six hours are 3 seconds. */
const FACTOR = 7_200;
const DAY_MS = 86_400_000 / FACTOR;
/** The looks come further and further apart; from the sixth without a change on, they come every six hours. */
const QUIET_LOOKS = 6;
const MEASURED_LOOKS = 6;
/** Source of these: the goal for a day of waiting, polled, and beyond its rounds. */
const MOST_LOOKS = 6;
const MOST_ACTIONS_OF_A_LOOK = 8;
const MOST_ACTIONS_OF_A_DAY = 12;
/** Source: the goal for one look. */
const MOST_CALLS_OF_A_LOOK = 12;

/** What a Temporal server bills: commands of a workflow, and attempts of activities. */
const ACTIONS = /^(?:activityTask(?:Scheduled|Started)|timerStarted|workflowExecutionSignaled|marker)/;

it.each(["github", "gitlab"] as const)("a quiet day on %s is a few looks, and little else", async (kind) => {
  const forge = await strictForge(kind);
  const git = createGitAccess({
    PATH: process.env["PATH"],
    LONGHAUL_GIT_TOKEN: forge.token,
    LONGHAUL_GIT_FOLDER: emptyFolder(),
  });
  const agent = await startAgent({
    git,
    sanitizer: createSanitizer([forge.token]),
    followPace: FACTOR,
    // None is due while it looks.
    heartbeatMs: 60_000,
  });
  onTestFinished(() => agent.close());
  const follow = followSchema.parse({ on: true, days: 365 });
  const session = await agent.run(
    scriptedModel().calls("bash", { command: "echo 1 > one; git add -A; git commit -qm One" }).says("Done."),
    { config: onRepository(forge.url, { push: "end", pr: "ready", forge: kind, follow }) },
  );
  const quietLooks = async () => (await findFollow(agent.database.store.db, session.id))?.quietLooks ?? 0;
  await eventually("nothing changes any more", async () => (await quietLooks()) >= QUIET_LOOKS);
  const calls = forge.calls.length;
  const from = await quietLooks();
  await eventually(
    "it has looked often enough",
    async () => (await quietLooks()) >= from + MEASURED_LOOKS,
    120_000,
  );
  const callsOfALook = (forge.calls.length - calls) / ((await quietLooks()) - from);

  const follower = agent.client.workflow.getHandle(followWorkflowId(session.id));
  const { events = [] } = await follower.fetchHistory();
  const timed = (events ?? []).map((event) => ({
    atMs: Number(event.eventTime?.seconds) * 1_000 + Number(event.eventTime?.nanos) / 1e6,
    isLook: event.activityTaskScheduledEventAttributes?.activityType?.name === "lookAtPullRequest",
    isAction: Object.keys(event).some((name) => ACTIONS.test(name)),
  }));
  const looks = timed.filter(({ isLook }) => isLook).slice(-MEASURED_LOOKS);
  const startMs = looks[0]?.atMs ?? Number.NaN;
  const day = timed.filter(({ atMs }) => atMs >= startMs && atMs < startMs + DAY_MS);
  const [looksOfADay, actionsOfADay] = [
    day.filter(({ isLook }) => isLook).length,
    day.filter(({ isAction }) => isAction).length,
  ];
  process.stdout.write(
    `A quiet day on ${kind}: ${looksOfADay} looks, ${actionsOfADay} actions, ${callsOfALook.toFixed(1)} calls of a look.\n`,
  );
  expect(looksOfADay).toBeGreaterThan(1);
  expect(looksOfADay).toBeLessThanOrEqual(MOST_LOOKS);
  expect(actionsOfADay / looksOfADay).toBeLessThanOrEqual(MOST_ACTIONS_OF_A_LOOK);
  expect(actionsOfADay).toBeGreaterThanOrEqual(2 * looksOfADay);
  expect(actionsOfADay).toBeLessThanOrEqual(MOST_ACTIONS_OF_A_DAY);
  expect(callsOfALook).toBeGreaterThan(3);
  expect(callsOfALook).toBeLessThanOrEqual(MOST_CALLS_OF_A_LOOK);
});
