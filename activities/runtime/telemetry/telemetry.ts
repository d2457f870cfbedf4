/** The port to the fleet's monitoring: spans and metrics. Types only; absent if no exporter is configured. */

export type Attributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

/** A finished piece of work. Ids are hex, by hash (`activities/store/traces.ts`), so that any worker can name a parent. */
export interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Absent of the root of a trace. */
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
  /** What went wrong, in a word; absent if nothing did. */
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
  /** Texts of people, model and tools go along, masked. */
  readonly withContent: boolean;
  /** Takes it at once, and never throws: what cannot be sent is dropped and counted. */
  span(span: Span): void;
  /** Adds to a metric. Never with a session's id among the attributes: each would be a series of its own. */
  add(metric: Metric, amount: number, attributes: Attributes): void;
}
