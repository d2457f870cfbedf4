/** A session with an open pull request on a strict fake, whose follower's activities a test calls; the session's runs are played in rows. */
import { randomBytes } from "node:crypto";
import { eq, like, sql } from "drizzle-orm";
import { followSchema, type FollowSettings } from "../../../activities/config/follow-settings.ts";
import { followWorkflowId, type FollowLook, type FollowOrder } from "../../../activities/contract/follow.ts";
import { createFollowActivities } from "../../../activities/follow/follow-pull-request.ts";
import { createGitAccess } from "../../../activities/git/git-access.ts";
import { createSanitizer } from "../../../activities/redaction/sanitizer.ts";
import type { AgentDeps } from "../../../activities/runtime/deps.ts";
import {
  findFollow,
  updateFollow,
  listFollowRounds,
  type FollowRound,
  type FollowRow,
} from "../../../activities/store/follows.ts";
import { recordPublication, saveRepository } from "../../../activities/store/repositories.ts";
import { guidance, sessions } from "../../../activities/store/schema/index.ts";
import { createSession } from "../../../activities/store/sessions.ts";
import { emptyFolder } from "../empty-folder.ts";
import { attemptOf, loneDeps } from "../lone-deps.ts";
import { onRepository } from "../remotes.ts";
import { changedConfig, configOf } from "../run-config.ts";
import type { TestDatabase } from "../test-database.ts";
import { PEOPLE } from "./kept-pull.ts";
import { strictForge, type StrictForge, type StrictKind } from "./strict-forge.ts";

export interface FollowStand {
  readonly id: string;
  readonly forge: StrictForge;
  readonly deps: AgentDeps;
  open(order?: FollowOrder): Promise<void>;
  look(): Promise<FollowLook>;
  row(): Promise<FollowRow | undefined>;
  rounds(): Promise<FollowRound[]>;
  /** A run of the session begins, and has read what waits. */
  begins(): Promise<void>;
  /** It ends. @param change one file that it has pushed */
  ends(status: string, change?: { readonly path: string; readonly text: string }): Promise<void>;
  /** The text of a round's message. */
  told(round: number): Promise<string>;
  /** What the follower wrote into the conversation, without its marks. */
  said(): readonly string[];
}

const DAY_MS = 86_400_000;

interface StandOptions {
  readonly kind?: StrictKind;
  readonly follow?: Partial<FollowSettings>;
  readonly pace?: number;
}

/** It is followed; nothing has settled to wait for, unless `follow.settle` says so. */
export async function followStand(
  { store }: TestDatabase,
  { kind = "github", follow = {}, pace = 1 }: StandOptions = {},
): Promise<FollowStand> {
  const forge = await strictForge(kind);
  const { db } = store;
  const id = `test-${randomBytes(4).toString("hex")}`;
  const branch = `longhaul/${id}`;
  const git = createGitAccess({
    PATH: process.env["PATH"],
    LONGHAUL_GIT_TOKEN: forge.token,
    LONGHAUL_GIT_FOLDER: emptyFolder(),
  });
  const sanitizer = createSanitizer([forge.token]);
  const deps = loneDeps(store, { model: {} as never, git, sanitizer, followPace: pace });
  const settings = followSchema.parse({ on: true, settle: 0, ...follow });
  const repository = onRepository(forge.url, { push: "end", pr: "ready", forge: kind, follow: settings });
  await createSession(store, { id, task: "Do it.", config: changedConfig(configOf({}), repository) });
  const at = { sessionId: id, epoch: 1, step: 1, ref: branch, runId: "r1", status: "done" } as const;
  const pushed = async (path: string, text: string) => {
    const commit = forge.push(branch, path, text);
    await recordPublication(db, { ...at, kind: "push", commit });
  };
  await saveRepository(db, {
    sessionId: id,
    url: forge.url,
    ref: null,
    baseCommit: forge.remote.at("refs/heads/main") ?? "",
    branch,
  });
  await pushed("one", "1\n");
  Object.assign(forge, { isOpened: true, branch, title: "Do it" });
  const url =
    kind === "github"
      ? "https://github.example/acme/app/pull/1"
      : "https://gitlab.example/acme/app/-/merge_requests/1";
  await recordPublication(db, { ...at, kind: "pull-request", commit: forge.head(), url });
  const activities = createFollowActivities(deps);
  const attempt = () => attemptOf(followWorkflowId(id), "f1");
  const set = (status: string, endedAt: unknown) =>
    db
      .update(sessions)
      .set({ status, endedAt: endedAt as Date | null })
      .where(eq(sessions.id, id));
  await set("completed", sql`clock_timestamp()`);
  let sequence = 1_000;
  const stand: FollowStand = {
    id,
    forge,
    deps,
    async open(order = {}) {
      await attempt().run(() => activities.openFollow(order));
      // No server says when the activity was scheduled.
      const days = order.days ?? settings.days;
      await updateFollow(db, id, { until: new Date(Date.now() + days * DAY_MS) });
    },
    look: () => attempt().run(() => activities.lookAtPullRequest()),
    row: () => findFollow(db, id),
    rounds: () => listFollowRounds(db, id),
    async begins() {
      await set("active", null);
      sequence += 1;
      await db
        .update(guidance)
        .set({ deliveredSequence: sequence })
        .where(sql`${guidance.sessionId} = ${id} and ${guidance.deliveredSequence} is null`);
    },
    async ends(status, change) {
      if (change !== undefined) await pushed(change.path, change.text);
      await set(status, sql`clock_timestamp()`);
    },
    async told(round) {
      const rows = await db
        .select({ parts: guidance.parts, ordinal: guidance.ordinal, sessionId: guidance.sessionId })
        .from(guidance)
        .where(like(guidance.id, `follow@${round}%`));
      const own = rows.filter(({ sessionId }) => sessionId === id).toSorted((a, b) => a.ordinal - b.ordinal);
      const parts = own.flatMap((row) => row.parts as readonly { readonly text: string }[]);
      return parts.map(({ text }) => text).join("\n");
    },
    said: () =>
      forge.comments
        .filter(({ by }) => by.id === PEOPLE.bot.id)
        .map(({ text }) => text.replace(/\s*<!-- longhaul .* -->/, "")),
  };
  await stand.open();
  return stand;
}
