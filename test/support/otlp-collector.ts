/** A double of an OpenTelemetry collector: accepts OTLP over HTTP as protobuf and keeps it. */
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import type { AddressInfo } from "node:net";
import protobuf from "protobufjs";

/** The part of opentelemetry/proto that tests read, with its field numbers. */
const { root } = protobuf.parse(`
  syntax = "proto3";
  message Traces { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5;
    fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9; repeated Event events = 11; repeated Link links = 13; Status status = 15;
  }
  message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; }
  message Link { bytes trace_id = 1; bytes span_id = 2; }
  message Status { string message = 2; int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; } }
  message Metrics { repeated ResourceMetrics resource_metrics = 1; }
  message ResourceMetrics { repeated ScopeMetrics scope_metrics = 2; }
  message ScopeMetrics { repeated Metric metrics = 2; }
  message Metric { string name = 1; string unit = 3; Sum sum = 7; Histogram histogram = 9; }
  message Sum { repeated Point data_points = 1; }
  message Histogram { repeated HistogramPoint data_points = 1; }
  message Point { double as_double = 4; sfixed64 as_int = 6; repeated KeyValue attributes = 7; }
  message HistogramPoint { fixed64 count = 4; double sum = 5; repeated KeyValue attributes = 9; }
`);

export interface CollectedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root span. */
  readonly parentId: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly string[];
  readonly links: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly error: string | undefined;
  readonly startNs: bigint;
  readonly endNs: bigint;
}

interface CollectedMetric {
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly value: number;
}

export interface OtlpCollector {
  readonly url: string;
  readonly spans: CollectedSpan[];
  /** As last reported. */
  readonly metrics: CollectedMetric[];
  /** Every received byte, as text. */
  readonly bytes: () => string;
  /** Number of requests. */
  readonly requests: () => number;
  close(): Promise<void>;
}

/** @param hangs accepts requests and never answers */
export async function startCollector({ hangs = false } = {}): Promise<OtlpCollector> {
  const bodies: Buffer[] = [];
  const spans: CollectedSpan[] = [];
  const metrics: CollectedMetric[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const sent = await buffer(request);
      const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(sent) : sent;
      bodies.push(body);
      if (hangs) return;
      if (request.url === "/v1/traces") spans.push(...spansIn(body));
      if (request.url === "/v1/metrics") metrics.splice(0, metrics.length, ...metricsIn(body));
      response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    metrics,
    bytes: () => Buffer.concat(bodies).toString("latin1"),
    requests: () => bodies.length,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

/* eslint-disable @typescript-eslint/no-explicit-any */
type Decoded = Readonly<Record<string, any>>;

const decode = (type: string, body: Buffer): Decoded =>
  root.lookupType(type).toObject(root.lookupType(type).decode(body), { longs: String, arrays: true });

function spansIn(body: Buffer): CollectedSpan[] {
  const list = decode("Traces", body)["resourceSpans"] as Decoded[];
  return list.flatMap((each) =>
    (each["scopeSpans"] as Decoded[]).flatMap((scope) =>
      (scope["spans"] as Decoded[]).map((span) => ({
        name: span["name"],
        traceId: hex(span["traceId"]),
        spanId: hex(span["spanId"]),
        parentId: hex(span["parentSpanId"]),
        attributes: attributesOf(span["attributes"]),
        events: (span["events"] as Decoded[]).map(({ name }) => name),
        links: (span["links"] as Decoded[]).map(({ traceId, spanId }) => ({
          traceId: hex(traceId),
          spanId: hex(spanId),
        })),
        error: span["status"]?.code === 2 ? span["status"].message : undefined,
        startNs: BigInt(span["startTimeUnixNano"]),
        endNs: BigInt(span["endTimeUnixNano"]),
      })),
    ),
  );
}

function metricsIn(body: Buffer): CollectedMetric[] {
  const list = decode("Metrics", body)["resourceMetrics"] as Decoded[];
  return list.flatMap((each) =>
    (each["scopeMetrics"] as Decoded[]).flatMap((scope) =>
      (scope["metrics"] as Decoded[]).flatMap(({ name, sum, histogram }) =>
        ((sum ?? histogram)?.dataPoints ?? []).map((point: Decoded) => ({
          name,
          attributes: attributesOf(point["attributes"]),
          value: Number(point["asDouble"] ?? point["asInt"] ?? point["count"]),
        })),
      ),
    ),
  );
}

const hex = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString("hex");

function attributesOf(list: Decoded[]): Record<string, unknown> {
  return Object.fromEntries(
    list.map(({ key, value }) => {
      const { stringValue, boolValue, intValue, doubleValue } = value ?? {};
      return [
        key,
        stringValue ?? boolValue ?? doubleValue ?? (intValue === undefined ? null : Number(intValue)),
      ];
    }),
  );
}
