/**
 * What a week of waiting costs, with all intervals divided by one factor, beside a week of looks by `bash`: actions that the Temporal
 * server keeps, history, commits, rows, requests, slots and containers.
 */
import { afterAll, expect, it } from "vitest";
import { untilNextLookMs } from "../../activities/waits/end-wait.ts";
import type { ConfigChanges } from "../support/run-config.ts";
import { useAgent, type RunningSession } from "../support/agent-harness.ts";
import { eventually } from "../support/eventually.ts";
import type { Reply } from "../support/model-server/wire.ts";
import { call, scriptedModel, text, type ModelScript } from "../support/scripted-model.ts";
import { measureSteps, type Cost, type StepCost } from "../support/step-cost.ts";

/** A heartbeat is due after what is measured: none is counted. */
const agent = useAgent(60_000);

const WEEK_SECONDS = 604_800;
/** A week is 30 seconds. */
const FACTOR = 20_160;
const WAIT_SECONDS = WEEK_SECONDS / FACTOR;
/** Ten minutes by the factor. */
const config: ConfigChanges = {
  questions: { mode: "ask", maxOpen: 5, parkAfter: Math.round(600_000 / FACTOR) },
};
/** Source: the goal for a day of waiting, which a week keeps too. */
const MOST_ACTIONS = 12;
/** A command of `bash` takes at most ten minutes. */
const LOOKS_OF_A_WEEK = WEEK_SECONDS / 600;
const WATCHED_LOOKS_OF_A_WEEK = looksWithin(WEEK_SECONDS * 1_000);

/** At a command in the background that is waited for. */
function looksWithin(waitMs: number): number {
  let looks = 0;
  for (let at = 0; at < waitMs; at += untilNextLookMs(at)) looks += 1;
  return looks;
}

interface Plan {
  /** The answer to the second request, and what comes instead of more of them. */
  readonly answers: readonly Reply[];
  readonly before?: Reply;
  /** What holds while it waits. */
  readonly meanwhile?: (session: RunningSession) => Promise<void>;
}

const work = { parts: [call("bash", { command: "echo work > done" })] };

/** From the second request to the one after the plan's answers. */
async function costOf({ answers, before = work, meanwhile }: Plan): Promise<Cost> {
  let costs: StepCost | undefined;
  const script: ModelScript = scriptedModel().replies(before);
  answers.forEach((reply, index) =>
    script.replies(async () => {
      if (index === 0) await costs?.mark(2);
      return reply;
    }),
  );
  script.replies(async () => {
    await costs?.mark(answers.length + 2);
    return { parts: [text("Done.")] };
  });
  const { client, database } = agent;
  const named = (id: string) => {
    costs = measureSteps({ client, pool: database.store.pool, url: database.url }, id);
  };
  const session = await agent.start(script, { config, named });
  await meanwhile?.(session);
  expect(await session.result()).toMatchObject({ status: "completed", result: "Done." });
  if (!costs) throw new Error("The session was not named.");
  return costs.between();
}

const containersOf = ({ id }: RunningSession) =>
  agent.docker.listContainers({ filters: { label: [`longhaul.session=${id}`], status: ["running"] } });

/** 2 is `started`: an attempt that a worker works at. */
const slotsOf = async ({ handle }: RunningSession) =>
  ((await handle.describe()).raw.pendingActivities ?? []).filter(({ state }) => state === 2).length;

/** Reads nothing from Postgres, whose commits are counted. */
async function costsNothing(session: RunningSession): Promise<void> {
  const { requests } = session.model;
  await eventually(
    "it waits",
    async () => requests.length === 2 && (await containersOf(session)).length === 0,
  );
  await eventually("nobody works for it", async () => (await slotsOf(session)) === 0);
  const seen = { slots: 0, containers: 0 };
  const began = performance.now();
  while (performance.now() - began < (WAIT_SECONDS * 1_000) / 4) {
    seen.slots += await slotsOf(session);
    seen.containers += (await containersOf(session)).length;
  }
  expect({ ...seen, requests: requests.length }).toEqual({ slots: 0, containers: 0, requests: 2 });
}

const table: string[] = [];
/** A line of the table in docs/waiting.md. */
function tell(what: string, cost: Cost, container: string): void {
  const { actions, events, historyBytes, commits, rows, rowBytes, requests } = cost;
  const figures = [
    whole(actions),
    `${whole(events)}, ${bytes(historyBytes)}`,
    whole(commits),
    `${whole(rows)}, ${bytes(rowBytes)}`,
    whole(requests),
  ];
  table.push(`| ${[what, ...figures, container].join(" | ")} |`);
}
const whole = (value: number) => Math.round(value).toLocaleString("en");
const bytes = (count: number) =>
  count < 1_000_000 ? `${whole(count / 1_000)} KB` : `${(count / 1_000_000).toFixed(1)} MB`;
afterAll(() => console.log(table.join("\n")));

const KINDS: readonly [what: string, plan: Plan][] = [
  [
    "a timed wait",
    {
      answers: [{ parts: [call("wait", { reason: "a week", seconds: WAIT_SECONDS })] }],
      meanwhile: costsNothing,
    },
  ],
  [
    "an open question",
    {
      answers: [{ parts: [call("ask_user", { question: "Which licence?" })] }],
      meanwhile: async (session) => {
        await costsNothing(session);
        await session.handle.signal("answer", "MIT");
      },
    },
  ],
  [
    "a model's limit",
    { answers: [{ error: { status: 429, rateLimitSeconds: WAIT_SECONDS } }], meanwhile: costsNothing },
  ],
];

it.each(KINDS)("a week of %s takes at most 12 actions, no slot and no container", async (what, plan) => {
  const cost = await costOf(plan);
  tell(what, cost, "none after 10 min");
  expect(cost.actions).toBeLessThanOrEqual(MOST_ACTIONS);
  expect(cost.requests).toBe(1);
  expect(cost.commits).toBeLessThanOrEqual(40);
});

it("a wait for a command takes one attempt a look, and no request", async () => {
  const seconds = WAIT_SECONDS / 2;
  const cost = await costOf({
    before: { parts: [call("bash", { command: `sleep ${seconds}`, background: true })] },
    answers: [{ parts: [call("wait", { reason: "it", process: "s1c0", seconds: WAIT_SECONDS })] }],
    meanwhile: async (session) => {
      await eventually("it waits", async () => session.model.requests.length === 2);
      expect(await containersOf(session)).toHaveLength(1);
    },
  });
  const { looks } = cost;
  expect(looks).toBeGreaterThan(3);
  expect(cost.requests).toBe(1);
  // Besides its looks, it is like any other wait.
  expect(cost.actions - looks).toBeLessThanOrEqual(MOST_ACTIONS);
  const commitsOfALook = cost.commits / looks;
  expect(commitsOfALook).toBeLessThanOrEqual(10);
  const more = WATCHED_LOOKS_OF_A_WEEK - looks;
  tell(
    "a wait for a command",
    { ...cost, actions: cost.actions + more, commits: cost.commits + more * commitsOfALook },
    "one",
  );
});

it("a week of looks by bash takes a thousand requests, and hundreds of times the actions", async () => {
  const looks = 10;
  const cost = await costOf({
    answers: Array.from({ length: looks }, () => ({
      parts: [call("bash", { command: "sleep 0.03; date +%N; test -e /tmp/deployed || echo not yet" })],
    })),
    meanwhile: async (session) => {
      await eventually("it looks", async () => session.model.requests.length >= 2);
      expect(await containersOf(session)).toHaveLength(1);
    },
  });
  expect(cost.requests).toBe(looks);
  const week = Object.fromEntries(
    Object.entries(cost).map(([name, value]) => [name, ((value as number) / looks) * LOOKS_OF_A_WEEK]),
  ) as unknown as Cost;
  tell("the same by looks with `bash`, ten minutes apart", week, "one");
  expect(week.requests).toBe(1_008);
  expect(week.actions).toBeGreaterThan(100 * MOST_ACTIONS);
});
