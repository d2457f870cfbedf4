/**
 * Makes bases for the team: of the newest commit of a repository's default branch, with the project's set-up, on each Docker host.
 *
 * Idempotency key: the base's own key. Side effects: the base, its rows, the mirror on the worker's disk. Heartbeat: by timer. Retry
 * class: Postgres; what else fails is stored for the list, and the next run tries again. Cancel: what was half made is removed.
 */
import { reasonOf } from "../contract/errors.ts";
import { fatal, rethrowIfCancelled } from "../contract/failures.ts";
import type { WarmActivities, WarmedHost, WarmInput, WarmPlan } from "../contract/warm.ts";
import { policyRefusal } from "../config/operator-policy.ts";
import { sumSetupTimeouts } from "../config/sandbox-settings.ts";
import { fetchForSession } from "../git/lay-out.ts";
import { inScope, type ActivityScope } from "../runtime/activity-scope.ts";
import { accessOf, type AgentDeps } from "../runtime/deps.ts";
import { databaseErrorOf } from "../store/database-error.ts";
import type { Session } from "../store/sessions.ts";
import { findWarm, hostsSeen, noteHost, noteWarmth, type Warm } from "../store/warms.ts";
import { shorten } from "../text/cut.ts";
import { findSetUpSettings, toBase, whyNoBase } from "../workspace/base.ts";
import { freeHostDisk } from "../workspace/host-disk.ts";
import { type BaseMakers, createBaseMakers } from "../workspace/base-makers.ts";

/** If the worker has no own time for a host. Source: the same as for a session's host, as a default. */
const HOST_MS = 60_000;
const MAX_FAILURE_CHARS = 500;

export function createWarmActivities(deps: AgentDeps): WarmActivities {
  const { db } = deps.store;
  const makers = createBaseMakers(deps);
  return {
    planWarm: (input) => inScope(deps, () => plan(deps, input)),
    warmHost: (input) =>
      inScope(deps, async (scope) => {
        const { name: host } = deps.sandboxHost;
        const at = { warmId: input.warm, host };
        try {
          return { host, outcome: await warm({ deps, makers, scope }, await requireWarm(deps, input)) };
        } catch (error) {
          rethrowIfCancelled(error);
          scope.signal.throwIfAborted();
          if (databaseErrorOf(error) !== undefined) throw error;
          const failure = shorten(deps.sanitizer.clean(reasonOf(error)), MAX_FAILURE_CHARS);
          await noteWarmth(db, at, { failure });
          return { host, outcome: "failed" };
        }
      }),
    noteAway: ({ warm: warmId, host }) =>
      inScope(deps, () =>
        noteWarmth(db, { warmId, host }, { failure: "no worker of this host took the work in time" }),
      ),
  };
}

/** @throws BadConfiguration (fatal) if it was ended */
async function requireWarm({ store }: AgentDeps, { warm: id }: WarmInput): Promise<Warm> {
  const known = await findWarm(store.db, id);
  if (known === undefined)
    throw fatal("BadConfiguration", `No repository is kept warm under the id ${id} any more.`);
  return known;
}

async function plan(deps: AgentDeps, input: WarmInput): Promise<WarmPlan> {
  const { store, sandboxHost, taskQueues } = deps;
  const { config } = await requireWarm(deps, input);
  const { sandbox: taskQueue, hostTimeoutMs = HOST_MS } = taskQueues;
  // This worker may not have told yet.
  await noteHost(store.db, { host: sandboxHost.name, taskQueue });
  const { sandbox } = config;
  return {
    hosts: await hostsSeen(store.db),
    setupMs: sumSetupTimeouts(sandbox.setup, sandbox),
    hostMs: hostTimeoutMs,
  };
}

interface Warming {
  readonly deps: AgentDeps;
  readonly makers: BaseMakers;
  readonly scope: ActivityScope;
}

/** @throws what cannot be made, in words for people */
async function warm({ deps, makers, scope }: Warming, { id, config }: Warm): Promise<WarmedHost["outcome"]> {
  const { db } = deps.store;
  const { repository } = config;
  // As a session with these settings.
  const refused = deps.policy && policyRefusal(deps.policy, config);
  if (refused !== undefined) throw new Error(`the operator's policy (${refused.rule}): ${refused.why}`);
  if (repository === undefined) throw new Error("its settings name no repository");
  const whyNone = await whyNoBase(deps, config);
  if (whyNone !== undefined) throw new Error(`no base can be made here: ${whyNone}`);
  const session = sessionFor(scope.sessionId, config);
  const access = accessOf(deps);
  // Of the default branch alone: nothing that a pull request names becomes part of it.
  const ofDefault = { ...repository, ref: undefined, push: "never", pr: "none" } as const;
  const fetched = await fetchForSession(access, ofDefault, scope.sessionId, scope.signal);
  if (fetched.start.defaultBranch === undefined) throw new Error("the repository has no default branch");
  const settings = await findSetUpSettings(deps, session, "team");
  const base = toBase(session, repository, fetched, { scope: "team", settings });
  const at = { warmId: id, host: deps.sandboxHost.name };
  const { commit, key: baseKey } = base;
  if (await makers.isHere(base)) {
    await noteWarmth(db, at, { commit, baseKey });
    return "there";
  }
  const made = await makers.make(
    { session, repository: ofDefault, access, fetched, signal: scope.signal },
    base,
  );
  const { files, bytes } = made ?? {};
  await noteWarmth(db, at, { commit, baseKey, files, bytes, isMade: true });
  await freeHostDisk(deps, { signal: scope.signal });
  return "made";
}

/** The settings of a session that does not exist: nobody's, with no files, no messages and no model. */
const sessionFor = (id: string, config: Warm["config"]): Session => ({
  id,
  config,
  status: "active",
  task: "",
  system: "",
  epoch: 1,
  runId: undefined,
  container: undefined,
  restoreWorkspace: false,
  sandboxQueue: undefined,
  sandboxNotice: false,
  hasWaiting: false,
  hasCommands: false,
  owner: undefined,
  parentId: undefined,
  isOrphan: false,
  reached: 0,
  tokenRatio: undefined,
});
