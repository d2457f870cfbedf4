/** What a collector gets of sessions: consistent traces, metrics, and no secret. */
import { expect, it, vi } from "vitest";
import { createOpenTelemetry } from "../../worker/telemetry/open-telemetry.ts";
import { readStatus } from "../../client/sessions/session-status.ts";
import { CANARY, eventually, startAgent } from "../support/agent-harness.ts";
import { clientServices, sessionRow } from "../support/client-services.ts";
import { delegating } from "../support/delegating.ts";
import { startMcpServer, withServers } from "../support/mcp-server.ts";
import { startCollector, type CollectedSpan } from "../support/otlp-collector.ts";
import { perFile } from "../support/per-file.ts";
import { scriptedModel } from "../support/scripted-model.ts";
import { billsOf } from "../support/stored.ts";

const stand = perFile(
  async () => {
    const collector = await startCollector();
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
    const settings = { withContent: true, traces: true, metrics: true, scheduleMs: 100, intervalMs: 500 };
    const telemetry = createOpenTelemetry(settings, "test", { warn: () => undefined });
    vi.unstubAllEnvs();
    return { collector, telemetry, agent: await startAgent({ telemetry }) };
  },
  async ({ collector, telemetry, agent }) => {
    await agent.close();
    await telemetry.close();
    await collector.close();
  },
);

const spansOf = (id: string) =>
  stand.collector.spans.filter((span) => span.attributes["gen_ai.conversation.id"] === id);
const isRun = ({ name }: CollectedSpan) => name === "invoke_agent longhaul";
const untilRuns = (id: string, count: number) =>
  eventually(`${count} runs of ${id} are traced`, () => {
    const list = spansOf(id);
    return list.filter(isRun).length >= count && list;
  });

it("has a run as one trace, requests and calls as siblings, with its bills and no secret", async () => {
  const script = scriptedModel()
    .fails(503)
    .calls("bash", { command: `echo the key is ${CANARY}` })
    .says("Done.");
  const session = await stand.agent.start(script, { task: `Use ${CANARY}.` });
  await session.result();
  const spans = await untilRuns(session.id, 1);
  expect(spans.map(({ name }) => name).toSorted()).toEqual([
    "chat gpt-4o",
    "chat gpt-4o",
    "chat gpt-4o",
    "execute_tool bash",
    "invoke_agent longhaul",
  ]);
  const root = spans.find(isRun);
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  expect(root?.parentId).toBe("");
  for (const span of spans.filter((span) => span !== root)) {
    expect(span.parentId).toBe(root?.spanId);
    expect(span.endNs > span.startNs && span.endNs <= (root?.endNs ?? 0n)).toBe(true);
  }
  const [failed] = spans.filter(({ error }) => error !== undefined);
  expect(failed).toMatchObject({ error: "unavailable", attributes: { "error.type": "unavailable" } });
  const bills = await billsOf(stand.agent.database.store, session.id);
  const sum = (name: string) => spans.reduce((all, span) => all + Number(span.attributes[name] ?? 0), 0);
  expect(sum("gen_ai.usage.input_tokens")).toBe(
    bills.reduce((all, bill) => all + (bill.inputTokens ?? 0), 0),
  );
  expect(sum("gen_ai.usage.output_tokens")).toBe(
    bills.reduce((all, bill) => all + (bill.outputTokens ?? 0), 0),
  );
  expect(sum("gen_ai.usage.input_tokens")).toBeGreaterThan(0);

  const row = await sessionRow(stand.agent, session.id);
  const status = await readStatus(clientServices(stand.agent), row);
  expect(status.traceId).toBe(root?.traceId);
  const { currentDetails } = await session.handle.query<{ currentDetails?: string }>(
    "__temporal_workflow_metadata",
  );
  expect(currentDetails).toContain(root?.traceId);

  const metrics = await eventually("the metrics are there", () => {
    const { metrics } = stand.collector;
    return metrics.some(({ name }) => name === "longhaul.sessions") && [...metrics];
  });
  expect(metrics.find(({ name }) => name === "longhaul.steps")?.value).toBe(2);
  expect(metrics.find(({ name }) => name === "longhaul.tool.duration")?.attributes).toEqual({
    tool: "bash",
    outcome: "completed",
  });
  const tool = spans.find(({ name }) => name === "execute_tool bash");
  expect(tool?.attributes["gen_ai.tool.call.result"]).toContain("the key is");
  expect(stand.collector.bytes()).not.toContain(CANARY);
  expect(JSON.stringify(metrics)).not.toContain(session.id);
});

it("links a run to the one it continues, and puts a delegate under the call that waits", async () => {
  const script = scriptedModel()
    .calls("write_file", { path: "a.txt", content: "a" })
    .calls("delegate", { task: "Look at a.txt." })
    // The delegate's.
    .says("It has an a.")
    .calls("bash", { command: "cat a.txt" })
    .calls("bash", { command: "cat a.txt" })
    .says("Done.");
  const session = await stand.agent.start(script, { config: delegating({}, { maxHistoryEvents: 50 }) });
  await session.result();
  const spans = await eventually("the last run is traced", () => {
    const list = spansOf(session.id);
    return list.some((span) => isRun(span) && span.attributes["longhaul.status"] === "completed") && list;
  });
  const runs = spans.filter(isRun).toSorted((a, b) => (a.startNs < b.startNs ? -1 : 1));
  expect(runs.length).toBeGreaterThan(1);
  expect(new Set(runs.map(({ traceId }) => traceId)).size).toBe(runs.length);
  const [first, second] = runs;
  expect(first).toMatchObject({ attributes: { "longhaul.status": "continued" }, links: [] });
  expect(second?.links).toEqual([{ traceId: first?.traceId, spanId: first?.spanId }]);

  const delegated = spans.find(({ name }) => name === "execute_tool delegate");
  const child = spansOf(`${session.id}.s2c0`);
  expect(child.find(isRun)).toMatchObject({ traceId: delegated?.traceId, parentId: delegated?.spanId });
  expect(new Set(child.map(({ traceId }) => traceId))).toEqual(new Set([delegated?.traceId]));
});

it("passes MCP servers the calling span", async () => {
  const server = await startMcpServer((made) => {
    made.registerTool("get", { description: "Gets." }, () => ({ content: [{ type: "text", text: "got" }] }));
  });
  const session = await stand.agent.start(scriptedModel().calls("rows__get", {}).says("Done."), {
    config: withServers({ rows: { url: server.url } }),
  });
  await session.result();
  const span = (await untilRuns(session.id, 1)).find(({ name }) => name === "execute_tool rows__get");
  const sent = server.bodies.find((body) => (body as { method: string }).method === "tools/call");
  expect(sent).toMatchObject({
    params: { _meta: { traceparent: `00-${span?.traceId}-${span?.spanId}-01` } },
  });
});
