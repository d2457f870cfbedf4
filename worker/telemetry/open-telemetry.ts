/**
 * Implements the port with OpenTelemetry's libraries; loaded only if an endpoint is set. Its exporters read the standard
 * variables themselves (OTEL_EXPORTER_OTLP_*, OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME).
 */
import {
  ROOT_CONTEXT,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
  TraceFlags,
} from "@opentelemetry/api";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import {
  envDetector,
  detectResources,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BatchSpanProcessor, TracerProvider, type SpanExporter } from "@opentelemetry/sdk-trace";
import type { Logger } from "pino";
import type { Metric, Telemetry, TelemetrySettings } from "../../activities/runtime/telemetry/telemetry.ts";
import { withTimeout } from "../../temporal/patience.ts";

/** How long the last spans and metrics may take when the worker ends, in ms: its grace period is for activities. */
const FLUSH_MS = 2_000;
/** Spans that wait for the exporter; more are dropped. Source: the specification's own default, about 4 MB. */
const MAX_WAITING = 2_048;

const UNITS: Readonly<Record<Metric, string>> = {
  "longhaul.steps": "{step}",
  "longhaul.tokens": "{token}",
  "longhaul.cost": "{USD}",
  "longhaul.tool.duration": "s",
  "longhaul.compactions": "{round}",
  "longhaul.sessions": "{session}",
};

/** Bucket boundaries; the library's own are for ms. Chosen: from a quick read to the longest command. */
const SECONDS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 7_200];

export interface OpenTelemetry extends Telemetry {
  /** Spans that were made and never arrived. */
  readonly dropped: number;
  /** Sends what waits, for 2 s at most. */
  close(): Promise<void>;
}

export function createOpenTelemetry(
  settings: TelemetrySettings,
  version: string,
  logger: Pick<Logger, "warn">,
): OpenTelemetry {
  const resource = resourceFromAttributes({ "service.name": "longhaul", "service.version": version }).merge(
    detectResources({ detectors: [envDetector] }),
  );
  const spans = createSpans(settings, { resource, version, logger });
  const meters = createMeters(settings, { resource, version });
  meters.meter
    .createObservableCounter("longhaul.telemetry.dropped", { unit: "{span}" })
    .addCallback((result) => result.observe(spans.lossy.dropped));
  return {
    withContent: settings.withContent,
    get dropped() {
      return spans.lossy.dropped;
    },
    span: spans.add,
    add: meters.add,
    async close() {
      const ended = Promise.all([spans.shutdown(), meters.shutdown()]);
      await withTimeout(ended, FLUSH_MS).catch(() => undefined);
      if (spans.lossy.unsent > 0)
        logger.warn({ dropped: spans.lossy.unsent }, "the last spans were not sent in time");
    },
  };
}

interface Origin {
  readonly resource: Resource;
  readonly version: string;
}

function createSpans(
  settings: TelemetrySettings,
  { resource, version, logger }: Origin & { readonly logger: Pick<Logger, "warn"> },
) {
  const lossy = countLosses(new OTLPTraceExporter(), MAX_WAITING, (reason) =>
    logger.warn({ reason, dropped: lossy.dropped }, "spans were not sent, and are dropped"),
  );
  const batches = new BatchSpanProcessor({
    exporter: lossy.exporter,
    maxQueueSize: MAX_WAITING,
    scheduledDelayMillis: settings.scheduleMs,
  });
  const ids = { trace: "", span: "" };
  const tracers = new TracerProvider({
    resource,
    idGenerator: { generateTraceId: () => ids.trace, generateSpanId: () => ids.span },
    spanProcessors: settings.traces ? [batches] : [],
  });
  const tracer = tracers.getTracer("longhaul", version);
  const add: Telemetry["span"] = (span) => {
    if (!lossy.takes()) return;
    ids.trace = span.traceId;
    ids.span = span.spanId;
    const sdkSpan = tracer.startSpan(span.name, optionsOf(span), parentOf(span));
    for (const { name, attributes, atMs } of span.events ?? [])
      sdkSpan.addEvent(name, listsOf(attributes), new Date(atMs));
    if (span.error !== undefined) sdkSpan.setStatus({ code: SpanStatusCode.ERROR, message: span.error });
    sdkSpan.end(new Date(span.endMs));
  };
  return { lossy, add, shutdown: () => tracers.shutdown() };
}

type Span = Parameters<Telemetry["span"]>[0];

/** Times are dates: a small number would count as a time of the process's own clock. */
const optionsOf = (span: Span): SpanOptions => ({
  kind: span.kind === "client" ? SpanKind.CLIENT : SpanKind.INTERNAL,
  startTime: new Date(span.startMs),
  attributes: {
    ...listsOf(span.attributes),
    ...(span.error === undefined ? {} : { "error.type": span.error }),
  },
  links: (span.links ?? []).map((link) => ({ context: contextOf(link.traceId, link.spanId) })),
});

const parentOf = ({ traceId, parentId }: Span) =>
  parentId === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, contextOf(traceId, parentId));

function createMeters(settings: TelemetrySettings, { resource, version }: Origin) {
  const exporting = () =>
    new PeriodicExportingMetricReader({
      exporter: new OTLPMetricExporter(),
      exportIntervalMillis: settings.intervalMs,
    });
  const meters = new MeterProvider({ resource, readers: settings.metrics ? [exporting()] : [] });
  const meter = meters.getMeter("longhaul", version);
  const adders = new Map<Metric, (amount: number, attributes: object) => void>();
  const adderOf = (metric: Metric) => {
    const known = adders.get(metric);
    if (known !== undefined) return known;
    const unit = UNITS[metric];
    const isDuration = metric === "longhaul.tool.duration";
    const instrument = isDuration
      ? meter.createHistogram(metric, { unit, advice: { explicitBucketBoundaries: SECONDS } })
      : meter.createCounter(metric, { unit });
    const add = (amount: number, attributes: object) =>
      "record" in instrument
        ? instrument.record(amount, { ...attributes })
        : instrument.add(amount, { ...attributes });
    adders.set(metric, add);
    return add;
  };
  const add: Telemetry["add"] = (metric, amount, attributes) => adderOf(metric)(amount, attributes);
  return { meter, add, shutdown: () => meters.shutdown() };
}

function contextOf(traceId: string, spanId: string) {
  return { traceId, spanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
}

function listsOf(attributes: Parameters<Telemetry["add"]>[2]) {
  return Object.fromEntries(
    Object.entries(attributes).map(([name, value]) => [name, typeof value === "object" ? [...value] : value]),
  );
}

interface Losses {
  readonly exporter: SpanExporter;
  /** Spans dropped so far. */
  readonly dropped: number;
  /** Spans that still wait or are being sent. */
  readonly unsent: number;
  /** Counts one more span as waiting, or as dropped if there is no room. @returns whether there was room */
  takes(): boolean;
}

/** The codes of `ExportResultCode`, which is in a package that is not ours to import. */
const SUCCESS = 0;

/** @param report called with each loss, with why */
function countLosses(inner: SpanExporter, maxWaiting: number, report: (reason: string) => void): Losses {
  let waiting = 0;
  let underWay = 0;
  let dropped = 0;
  let isFull = false;
  const losses: Losses = {
    get dropped() {
      return dropped;
    },
    get unsent() {
      return waiting + underWay;
    },
    takes() {
      if (waiting < maxWaiting) {
        isFull = false;
        waiting += 1;
        return true;
      }
      dropped += 1;
      // Once for each time that it fills up, not for each span.
      if (!isFull) report(`${maxWaiting} spans wait already`);
      isFull = true;
      return false;
    },
    exporter: {
      export(spans, done) {
        waiting -= spans.length;
        underWay += spans.length;
        inner.export(spans, (result) => {
          underWay -= spans.length;
          if (result.code !== SUCCESS) {
            dropped += spans.length;
            report(result.error?.message ?? "the endpoint refused them");
          }
          done(result);
        });
      },
      shutdown: () => inner.shutdown(),
    },
  };
  return losses;
}
