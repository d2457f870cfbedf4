/** A pull request's whole life on a real Gitea: without any hook, and with the worker killed in the middle of everything it writes. */
import { eq } from "drizzle-orm";
import { expect, it, onTestFinished } from "vitest";
import { followSchema, type FollowSettings } from "../../activities/config/follow-settings.ts";
import { verifySchema } from "../../activities/config/verify-settings.ts";
import { followWorkflowId, FOLLOW_SIGNALS } from "../../activities/contract/follow.ts";
import { isRoundMessage } from "../../activities/contract/guidance.ts";
import { createGitAccess } from "../../activities/git/git-access.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { guidance, sessions } from "../../activities/store/schema/index.ts";
import { startAgent } from "../support/agent-harness.ts";
import { checkSession } from "../support/checker/check-session.ts";
import { createRowHolds, type RowHoldSpec } from "../support/crash/row-holds.ts";
import { emptyFolder } from "../support/empty-folder.ts";
import { eventually } from "../support/eventually.ts";
import {
  CIRCLE_END,
  CIRCLE_VERIFY,
  circleEnd,
  circleModel,
  playCircle,
  type CirclePoint,
} from "../support/forge/circle.ts";
import { giteaPlace } from "../support/forge/gitea-place.ts";
import type { GiteaServer } from "../support/gitea/server.ts";
import { describeOnGitea } from "../support/gitea/use-gitea.ts";
import { startKillableSession } from "../support/killable-session.ts";
import { onRepository } from "../support/remotes.ts";
import { useDatabase } from "../support/test-database.ts";

/** A heartbeat that does not come is noticed after 30 s; a busy machine starts a worker in as many. */
const KILLED_MS = 180_000;

const configOn = (server: GiteaServer, name: string, follow: Partial<FollowSettings>) => ({
  verify: verifySchema.parse({ commands: [CIRCLE_VERIFY] }),
  ...onRepository(`${server.url}/owner/${name}.git`, {
    push: "end",
    pr: "ready",
    follow: followSchema.parse({ on: true, ...follow }),
  }),
});

/** Gitea shows the comments of a line together, wherever the line is by now, and cannot resolve a thread. */
function asOnGitea({ threads, ...end }: Awaited<ReturnType<typeof circleEnd>>) {
  return { ...end, said: threads.flatMap(({ texts }) => texts).toSorted() };
}

const END_ON_GITEA = asOnGitea({ ...CIRCLE_END, threads: [...CIRCLE_END.threads] } as never);

describeOnGitea("a pull request lives its whole life on a real Gitea", (gitea) => {
  it("without a hook", async () => {
    const server = gitea();
    const repository = await server.makeRepository("polled");
    const git = createGitAccess({
      PATH: process.env["PATH"],
      LONGHAUL_GIT_TOKEN: server.tokens.bot,
      LONGHAUL_GIT_FOLDER: emptyFolder(),
    });
    // 90 s are 0.2 s, 6 hours are 43 s.
    const agent = await startAgent({ git, sanitizer: createSanitizer([server.tokens.bot]), followPace: 500 });
    onTestFinished(() => agent.close());
    const script = circleModel(() => stand.place);
    const session = await agent.start(script, { config: configOn(server, "polled", {}) });
    expect(await session.result()).toMatchObject({ status: "completed", delivery: "done" });
    const stand = {
      store: agent.database.store,
      session,
      place: giteaPlace(server, repository, `longhaul/${session.id}`),
      changed: () => Promise.resolve(),
    };
    await playCircle(stand);
    expect(asOnGitea(await circleEnd(stand))).toEqual(END_ON_GITEA);
    await checkSession(agent, session);
  });

  const database = useDatabase();

  it("with its worker killed at each point, and does nothing twice", async () => {
    const server = gitea();
    const repository = await server.makeRepository("killed");
    const holds = await createRowHolds(database);
    onTestFinished(() => holds.close());
    const script = circleModel(() => stand.place);
    const session = await startKillableSession(database, script, {
      config: configOn(server, "killed", { settle: 300 }),
      environment: { LONGHAUL_GIT_TOKEN: server.tokens.bot, LONGHAUL_GIT_FOLDER: emptyFolder() },
    });
    let worker = await session.startWorker();
    expect(await session.handle.result()).toMatchObject({ status: "completed", delivery: "done" });
    const { client } = session.services;
    const follower = client.workflow.getHandle(followWorkflowId(session.id));
    const place = giteaPlace(server, repository, `longhaul/${session.id}`);
    const killings: Promise<void>[] = [];
    const stand = {
      store: database.store,
      session,
      place,
      changed: () => follower.signal(FOLLOW_SIGNALS.woken),
    };
    /** Kills the worker as it commits this row, which is kept, or lost with it. */
    async function killAt(spec: RowHoldSpec, fate: "kept" | "lost"): Promise<() => Promise<void>> {
      const hold = await holds.hold(session.id, spec);
      return async () => {
        await eventually(`a row of ${spec.table} waits`, () => hold.reached(), KILLED_MS);
        await worker.kill();
        await hold.release(fate);
        worker = await session.startWorker();
      };
    }
    const inTurn = async (...kills: Awaited<ReturnType<typeof killAt>>[]) => {
      for (const kill of kills) await kill();
    };
    const at: Readonly<Record<CirclePoint, () => Promise<readonly (() => Promise<void>)[]>>> = {
      // The round is told and nobody knows; then its push is made and not recorded.
      red: async () => [
        await killAt({ table: "follow_rounds", match: { round_number: 1 } }, "kept"),
        await killAt({ table: "publications", match: { kind: "push", status: "done" } }, "lost"),
      ],
      // The round is not told; then its replies are written and not recorded.
      review: async () => [
        await killAt({ table: "follow_rounds", match: { round_number: 2 } }, "lost"),
        await killAt({ table: "events", match: { type: "follow:answered" } }, "lost"),
      ],
      // The push is announced and not made.
      conflict: async () => [
        await killAt({ table: "publications", match: { kind: "push", status: "begun" } }, "kept"),
      ],
      // People are told on the forge, which is not recorded.
      foreign: async () => [await killAt({ table: "events", match: { type: "follow:waiting" } }, "lost")],
      merge: async () => [await killAt({ table: "events", match: { type: "follow:ended" } }, "lost")],
    };
    await playCircle(stand, async (point) => {
      const killing = inTurn(...(await at[point]()));
      // Awaited below; a circle that fails first says so itself.
      killing.catch(() => undefined);
      killings.push(killing);
    });
    await Promise.all(killings);
    expect(await follower.result()).toEqual({ end: "merged", rounds: 3 });
    expect(asOnGitea(await circleEnd(stand))).toEqual(END_ON_GITEA);

    const { db } = database.store;
    const rows = await db.select().from(guidance).where(eq(guidance.sessionId, session.id));
    expect(rows.filter(({ id }) => isRoundMessage(id)).map(({ id }) => id)).toHaveLength(3);
    const delivered = rows.map(({ deliveredSequence }) => deliveredSequence);
    expect(new Set(delivered).size).toBe(3);
    expect(await db.$count(sessions)).toBe(1);
    const pulls = await server.made<readonly unknown[]>("dev", "GET", `${repository}/pulls?state=all`);
    expect(pulls).toHaveLength(1);
    await checkSession(session.services, session);
  });
});
