/** After a soak: the checker over each session, and what was left behind. */
import { sql } from "drizzle-orm";
import pg from "pg";
import { removeBox } from "../support/remove-box.ts";
import { CANARY } from "../support/canary.ts";
import { checkEvidence } from "../support/checker/check.ts";
import { collectEvidence } from "../support/checker/collect.ts";
import type { Sessions } from "./sessions.ts";
import type { ChaosStand } from "./stand.ts";
import type { CheckedRun } from "./summary.ts";

export async function checkAll(
  stand: ChaosStand,
  sessions: Sessions,
  say: (line: string) => void,
): Promise<CheckedRun[]> {
  const list: CheckedRun[] = [];
  for (const { id, status, disruptions } of sessions.all) {
    if (status === "NONE") continue;
    try {
      const evidence = await collectEvidence(stand.place, id, {
        canaries: [CANARY],
        served: stand.model.logOf(id),
        kills: disruptions,
      });
      const violations = checkEvidence(evidence);
      const ended =
        status === "COMPLETED"
          ? []
          : [{ claim: "end", where: `session ${id}`, expected: "COMPLETED", found: await whyNot(stand, id) }];
      list.push({ id, status, evidence, violations: [...ended, ...violations] });
      for (const { claim, where, expected, found } of [...ended, ...violations])
        say(`${claim} ${id} at ${where}: expected ${expected}; found ${found}`);
    } catch (error) {
      const found = error instanceof Error ? error.message : String(error);
      const failure = { claim: "check", where: `session ${id}`, expected: "evidence", found };
      list.push({ id, status, evidence: undefined, violations: [failure] });
      say(`${id} could not be checked: ${found}`);
    }
  }
  return list;
}

/** What a run that did not complete waits for, or failed with. */
async function whyNot({ client, place }: ChaosStand, id: string): Promise<string> {
  const { status, raw } = await client.workflow.getHandle(id).describe();
  const pending = (raw.pendingActivities ?? []).map(
    ({ activityType, attempt, lastFailure }) =>
      `${activityType?.name}, attempt ${attempt}: ${lastFailure?.message ?? "at work"}`,
  );
  const { rows } = await place.database.store.db.execute<{ error: unknown }>(
    sql`select error from sessions where id = ${id}`,
  );
  return `${status.name} ${JSON.stringify(rows[0]?.error ?? null)} ${pending.join("; ")}`.slice(0, 600);
}

/** Sandboxes, volumes and connections that outlive all sessions and both workers. */
export async function findLeaks(stand: ChaosStand, sessions: Sessions): Promise<string[]> {
  const ours = new Set(sessions.all.map(({ id }) => id));
  const isOurs = (labels: Readonly<Record<string, string>> | undefined) =>
    ours.has(labels?.["longhaul.session"] ?? "");
  const filters = { label: ["longhaul.session"] };
  const containers = await stand.docker.listContainers({ all: true, filters });
  const { Volumes: volumes } = await stand.docker.listVolumes({ filters });
  return [
    ...containers
      .filter(({ Labels: labels }) => isOurs(labels))
      .map(({ Names: [name] }) => `a sandbox is left: ${name}`),
    ...volumes
      .filter(({ Labels: labels }) => isOurs(labels))
      .map(({ Name: name }) => `a volume is left: ${name}`),
    ...(await leftConnections(stand)),
  ];
}

/** For later runs: removes sandboxes of sessions that did not end. */
export async function removeLeft({ docker }: ChaosStand, sessions: Sessions): Promise<void> {
  for (const { id } of sessions.all) await removeBox(docker, id).catch(() => undefined);
}

async function leftConnections({ postgres }: ChaosStand): Promise<string[]> {
  const client = new pg.Client({ connectionString: postgres.url, application_name: "chaos" });
  await client.connect();
  try {
    // The soak's own store has its pool, idle by now.
    const { rows } = await client.query<{ query: string; state: string }>(
      "select state, left(query, 80) as query from pg_stat_activity where application_name ~ '^longhaul( |$)' and state <> 'idle'",
    );
    return rows.map(({ state, query }) => `a connection is left, ${state}: ${query}`);
  } finally {
    await client.end();
  }
}
