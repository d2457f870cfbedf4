/** A pull request from its first red check to its merge, on GitHub and GitLab, however many of the hooks come. */
import { describe, expect, it, onTestFinished } from "vitest";
import { followSchema } from "../../activities/config/follow-settings.ts";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import { FOLLOW_SIGNALS, followWorkflowId } from "../../activities/contract/follow.ts";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { startAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { CIRCLE_END, CIRCLE_VERIFY, circleEnd, circleModel, playCircle } from "../support/forge/circle.ts";
import { strictForge, type StrictKind } from "../support/forge/strict-forge.ts";
import { strictPlace } from "../support/forge/strict-place.ts";
import { onRepository } from "../support/remotes.ts";

/** How many hooks come for a change, by its number from 1; and what intervals are divided by. */
const HOOKS = {
  "every hook comes": { of: () => 1, pace: 1, settleMs: 300 },
  "no hook comes": { of: () => 0, pace: 500, settleMs: 90_000 },
  "every second hook is lost, and every third comes twice": {
    of: (change: number) => [0, 1, 0, 2, 0, 1][change % 6] ?? 0,
    pace: 500,
    settleMs: 90_000,
  },
} as const;

async function circle(kind: StrictKind, { of, pace, settleMs }: (typeof HOOKS)[keyof typeof HOOKS]) {
  const forge = await strictForge(kind);
  const place = strictPlace(forge);
  const git = createGitAccess({
    PATH: process.env["PATH"],
    LONGHAUL_GIT_TOKEN: forge.token,
    LONGHAUL_GIT_FOLDER: emptyFolder(),
  });
  const agent = await startAgent({ git, sanitizer: createSanitizer([forge.token]), followPace: pace });
  onTestFinished(() => agent.close());
  const follow = followSchema.parse({ on: true, settle: settleMs });
  const session = await agent.start(
    circleModel(() => place),
    {
      config: {
        verify: verifySchema.parse({ commands: [CIRCLE_VERIFY] }),
        ...onRepository(forge.url, { push: "end", pr: "ready", forge: kind, follow }),
      },
    },
  );
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
  let changes = 0;
  const follower = agent.client.workflow.getHandle(followWorkflowId(session.id));
  const stand = {
    store: agent.database.store,
    session,
    place,
    changed: async () => {
      changes += 1;
      for (let hook = 0; hook < of(changes); hook += 1) await follower.signal(FOLLOW_SIGNALS.woken);
    },
  };
  await playCircle(stand);
  expect(await follower.result()).toEqual({ end: "merged", rounds: 3 });
  await checkSession(agent, session);
  const red = (await session.dataOf("verify:ended"))[0];
  expect(red).toMatchObject({ outcome: "failed" });
  return { ...(await circleEnd(stand)), asked: forge.asked, opened: forge.calls.filter(opens).length };
}

/** GitLab's REST API asks nobody again who is a reviewer. */
const ASKED_AGAIN = { github: ["dev"], gitlab: [] } as const;

const opens = (asked: string): boolean => /^POST \/\S+\/(pulls|merge_requests)$/.test(asked);

describe.each(["github", "gitlab"] as const)("on %s", (kind) => {
  it.each(Object.keys(HOOKS) as (keyof typeof HOOKS)[])("it comes to the same end: %s", async (hooks) => {
    expect(await circle(kind, HOOKS[hooks])).toEqual({ ...CIRCLE_END, opened: 1, asked: ASKED_AGAIN[kind] });
  });
});
