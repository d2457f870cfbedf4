/** A limit of hours, from the answer over HTTP to what people are told: one timer, and nothing is asked meanwhile. */
import { expect, it } from "vitest";
import { listText } from "../../client/commands/list.ts";
import { statusText } from "../../client/commands/status.ts";
import { listDocuments, readStatus } from "../../client/sessions/session-status.ts";
import { type RunningSession, useAgent } from "../support/agent-harness.ts";
import { clientServices, quietOutput, say, sessionRow } from "../support/client-services.ts";
import { eventually } from "../support/eventually.ts";
import { scriptedModel, text } from "../support/scripted-model.ts";

const agent = useAgent();
const HOUR_MS = 3_600_000;

/** How long the run's timers are, in ms; a wait of the loop itself is longer than ten seconds. */
async function waitsOf({ handle }: RunningSession): Promise<number[]> {
  const { events = [] } = await handle.fetchHistory();
  return (events ?? [])
    .map(({ timerStartedEventAttributes: timer }) => Number(timer?.startToFireTimeout?.seconds ?? 0) * 1_000)
    .filter((ms) => ms >= 10_000);
}

it.each([
  ["in its words", "You have reached your 5-hour usage limit. It resets in 5h 0m.", {}],
  ["in its header", "Rate limit exceeded.", { "retry-after": "18000" }],
] as const)(
  "a 429 that names a five-hour limit %s waits by one timer; status and list say until when",
  async (_, message, headers) => {
    let isOver = false;
    const session = await agent.start(() =>
      isOver ? { parts: [text("Done.")] } : { error: { status: 429, message, headers } },
    );
    const services = clientServices(agent);
    const status = async () => readStatus(services, await sessionRow(agent, session.id));
    await eventually("a wait that status shows", async () => (await status()).waitsUntil !== null);
    const document = await status();
    const leftMs = Date.parse(document.waitsUntil ?? "") - Date.now();
    expect(leftMs).toBeGreaterThan(4.9 * HOUR_MS);
    expect(leftMs).toBeLessThan(5.1 * HOUR_MS);
    expect(statusText(document, undefined, quietOutput([]).style, new Date())).toContain("answers again at");
    const listed = await listDocuments(services, { limit: 50, all: true, owner: undefined });
    const mine = listed.filter(({ id }) => id === session.id);
    expect(mine).toMatchObject([{ status: "active", waitsUntil: expect.any(String) }]);
    const shown = { ...quietOutput([]), columns: 200, hasOwners: false, now: new Date() };
    expect(listText(mine, shown)).toMatch(/active, waits (?:4 h 5\d|5 h)/);
    await eventually("the timer", async () => (await waitsOf(session)).length === 1);
    expect((await waitsOf(session))[0]).toBeGreaterThan(4.9 * HOUR_MS);
    expect(session.model.log).toHaveLength(1);
    isOver = true;
    await say(agent, session.id, { id: "m1", text: "The limit is lifted." });
    expect((await session.result()).status).toBe("completed");
    expect(session.model.log.map((asked) => asked.status)).toEqual([429, 200]);
    expect((await status()).waitsUntil).toBeNull();
  },
);

it("the session goes on by itself once the limit, 1,500 times shortened, is over", async () => {
  const script = scriptedModel()
    .fails(429, "You have reached your usage limit. It resets in 12s.")
    .says("Done.");
  const session = await agent.run(script);
  expect(session.model.log.map(({ status }) => status)).toEqual([429, 200]);
  const [first, second] = session.model.log.map(({ receivedAt }) => receivedAt);
  expect((second ?? 0) - (first ?? 0)).toBeGreaterThanOrEqual(12_000);
  expect(await waitsOf(session)).toHaveLength(1);
});
