/** The port to the fleet's monitoring: spans and metrics. Types only; absent if no exporter is configured. */
export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** A finished piece of work. Ids are hex, by hash (`activities/store/traces.ts`), so that any worker can name a parent. */
export interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Absent in the root of a trace. */
  readonly parentId?: string;
  /** A request to another service, or work of ours. */
  readonly kind: "client" | "internal";
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly events?: readonly {
    readonly name: string;
    readonly atMs: number;
    readonly attributes: Attributes;
  }[];
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  /** The type of the error; absent if there was none. */
  readonly error?: string;
}

/** Names are a contract: only ever added. */
export type Metric =
  | "longhaul.steps"
  | "longhaul.tokens"
  | "longhaul.cost"
  | "longhaul.tool.duration"
  | "longhaul.compactions"
  | "longhaul.sessions";

export interface Telemetry {
  /** Whether texts of people, the model and tools are included, masked. */
  readonly withContent: boolean;
  /** Returns at once and never throws: a span that cannot be sent is dropped and counted. */
  span(span: Span): void;
  /** Adds to a metric. Its attributes must not contain a session's id: each session would be a series of its own. */
  add(metric: Metric, amount: number, attributes: Attributes): void;
}

/** How telemetry is sent. Read from the environment by worker/config.ts. */
export interface TelemetrySettings {
  readonly withContent: boolean;
  readonly traces: boolean;
  readonly metrics: boolean;
  /** How long spans are gathered before they are sent, in ms. */
  readonly scheduleMs: number;
  /** How often metrics are sent, in ms. */
  readonly intervalMs: number;
}
