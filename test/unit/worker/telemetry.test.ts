/** The adapter to OpenTelemetry, which costs nothing if it is not used. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished, vi } from "vitest";
import type { Span } from "../../../activities/runtime/telemetry/telemetry.ts";
import { readWorkerConfig } from "../../../worker/config.ts";
import { createOpenTelemetry } from "../../../worker/telemetry/open-telemetry.ts";
import { startCollector } from "../../support/otlp-collector.ts";

const SETTINGS = { withContent: false, traces: true, metrics: false, scheduleMs: 20, intervalMs: 60_000 };
const span = (place: number): Span => ({
  name: "execute_tool bash",
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: (place + 1).toString(16).padStart(16, "0"),
  parentId: "00f067aa0ba902b7",
  kind: "internal",
  startMs: 1_000,
  endMs: 2_500,
  attributes: { "gen_ai.tool.name": "bash", "gen_ai.response.finish_reasons": ["stop"] },
});

async function telemetryTo(options: { readonly hangs?: boolean }) {
  const collector = await startCollector(options);
  onTestFinished(() => collector.close());
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
  // The default 10 s are for a busy machine; a test of a hanging endpoint need not wait that long.
  if (options.hangs) vi.stubEnv("OTEL_EXPORTER_OTLP_TIMEOUT", "200");
  const warn = vi.fn<(facts: object, message: string) => void>();
  const telemetry = createOpenTelemetry(SETTINGS, "test", { warn: warn as never });
  vi.unstubAllEnvs();
  return { collector, telemetry, warn };
}

it("sends spans with the given ids and times", async () => {
  const { collector, telemetry } = await telemetryTo({});
  telemetry.span(span(0));
  telemetry.span({ ...span(1), parentId: undefined, error: "timeout" } as never);
  await telemetry.close();
  expect(collector.spans).toMatchObject([
    {
      traceId: "0af7651916cd43dd8448eb211c80319c",
      spanId: "0000000000000001",
      parentId: "00f067aa0ba902b7",
      error: undefined,
    },
    { spanId: "0000000000000002", parentId: "", error: "timeout" },
  ]);
  const [first] = collector.spans;
  expect((first?.endNs ?? 0n) - (first?.startNs ?? 0n)).toBe(1_500_000_000n);
  expect(telemetry.dropped).toBe(0);
});

it("drops and counts what a hanging endpoint does not accept, and ends within its time", async () => {
  const { collector, telemetry, warn } = await telemetryTo({ hangs: true });
  const began = performance.now();
  for (let place = 0; place < 5_000; place += 1) telemetry.span(span(place));
  const eachMs = (performance.now() - began) / 5_000;
  // Nothing waits for the endpoint. Source: ours, an export's timeout is 200 times that.
  expect(eachMs).toBeLessThan(1);
  expect(telemetry.dropped).toBeGreaterThanOrEqual(5_000 - 2_048 - 512);
  await vi.waitFor(() => expect(collector.requests()).toBeGreaterThan(0), 5_000);
  const closing = performance.now();
  await telemetry.close();
  expect(performance.now() - closing).toBeLessThan(2_500);
  expect(warn).toHaveBeenCalled();
});

it("is not loaded without an endpoint", () => {
  const config = { DATABASE_URL: "postgres://localhost/x" };
  expect(readWorkerConfig(config).telemetry).toBeUndefined();
  expect(
    readWorkerConfig({ ...config, OTEL_EXPORTER_OTLP_ENDPOINT: "http://x:4318", OTEL_SDK_DISABLED: "true" })
      .telemetry,
  ).toBeUndefined();
  const root = fileURLToPath(new URL("../../../", import.meta.url));
  const program = `
    import { registerHooks } from "node:module";
    const loaded = [];
    registerHooks({ load(url, context, next) { loaded.push(url); return next(url, context); } });
    await import("./worker/deps.ts");
    const before = loaded.filter((url) => url.includes("@opentelemetry"));
    await import("./worker/telemetry/open-telemetry.ts");
    const after = loaded.filter((url) => url.includes("@opentelemetry"));
    console.log(JSON.stringify([before, after.length > 0]));`;
  const out = execFileSync(process.execPath, ["--input-type=module", "--eval", program], {
    cwd: root,
    encoding: "utf8",
  });
  expect(JSON.parse(out)).toEqual([[], true]);
});
