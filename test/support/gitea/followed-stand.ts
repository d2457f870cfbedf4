/** A session on a real Gitea whose pull request is followed; all intervals are divided by one factor. */
import { expect, onTestFinished } from "vitest";
import { followSchema, type FollowSettings } from "../../../activities/config/follow-settings.ts";
import { FOLLOW_SIGNALS, followWorkflowId } from "../../../activities/contract/follow.ts";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { createSanitizer } from "../../../activities/redaction/sanitizer.ts";
import { findFollow, listFollowRounds } from "../../../activities/store/follows.ts";
import { startAgent, type RunningSession } from "../agent-harness.ts";
import { emptyFolder } from "../empty-folder.ts";
import { onRepository } from "../remotes.ts";
import type { ModelScript } from "../scripted-model.ts";
import type { GiteaServer } from "./server.ts";

/** 90 s are 0.2 s, 6 hours are 43 s. */
const PACE = 500;

interface Comment {
  readonly body: string;
}

export async function startFollowed(
  server: GiteaServer,
  name: string,
  script: ModelScript,
  { pr = "ready", ...follow }: Partial<FollowSettings> & { readonly pr?: "ready" | "draft" } = {},
) {
  const token = server.tokens.bot;
  const repository = await server.makeRepository(name);
  const git = createGitAccess({
    PATH: process.env["PATH"],
    LONGHAUL_GIT_TOKEN: token,
    LONGHAUL_GIT_FOLDER: emptyFolder(),
  });
  const agent = await startAgent({ git, sanitizer: createSanitizer([token]), followPace: PACE });
  onTestFinished(() => agent.close());
  const url = `${server.url}/owner/${name}.git`;
  const config = onRepository(url, {
    push: "end",
    pr,
    follow: followSchema.parse({ on: true, ...follow }),
  });
  const session = await agent.start(script, { config });
  expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
  const branch = `longhaul/${session.id}`;
  const pull = `${repository}/pulls/1`;
  const follower = agent.client.workflow.getHandle(followWorkflowId(session.id));
  const status = (commit: string, state: string, context = "ci / test") =>
    server.made("dev", "POST", `${repository}/statuses/${commit}`, { context, state });
  const comments = () => server.made<Comment[]>("dev", "GET", `${repository}/issues/1/comments`);
  const headOf = async () => {
    const { head } = await server.made<{ readonly head: { readonly sha: string } }>("dev", "GET", pull);
    return head.sha;
  };
  const look = () => follower.signal(FOLLOW_SIGNALS.woken);
  return { agent, server, repository, session, branch, pull, follower, status, comments, headOf, look };
}

export type FollowedStand = Awaited<ReturnType<typeof startFollowed>>;

export const followed = (stand: FollowedStand) => findFollow(stand.agent.database.store.db, stand.session.id);

export const roundsOf = (stand: FollowedStand) =>
  listFollowRounds(stand.agent.database.store.db, stand.session.id);

export const isTold = (session: RunningSession, text: string): boolean =>
  session.model.requests.some((request) => JSON.stringify(request.items).includes(text));
