/** A double of an OpenTelemetry collector: accepts OTLP over HTTP as protobuf and keeps it. */
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import type { AddressInfo } from "node:net";
import protobuf from "protobufjs";
import { fixtureText } from "./fixture-text.ts";

const { root } = protobuf.parse(fixtureText("otlp.proto"));

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
  return list.flatMap((resource) =>
    (resource["scopeSpans"] as Decoded[]).flatMap((scope) =>
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
  return list.flatMap((resource) =>
    (resource["scopeMetrics"] as Decoded[]).flatMap((scope) =>
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
