/** Recorded histories: taken from Temporal, stripped of where they were recorded, stored as small files. */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { historyToJSON } from "@temporalio/common/lib/proto-utils.js";
import type { WorkflowHandle } from "@temporalio/client";

const HISTORIES = fileURLToPath(new URL("../fixtures/histories", import.meta.url));

/** Where it was recorded; replay reads none of it. */
const WHERE = new Set(["identity", "stackTrace", "binaryChecksum"]);
/** Names of sticky queues contain identities too. */
const IDENTITY = /\d+@[\w.-]+/g;

export interface RecordedHistory {
  readonly shape: string;
  readonly text: string;
  readonly history: { readonly events: readonly Record<string, unknown>[] };
}

/** One event a line, so that the diff of a new recording shows what changed. */
export async function recordHistory(
  shape: string,
  handle: Pick<WorkflowHandle, "fetchHistory" | "describe">,
): Promise<string> {
  const { events } = JSON.parse(historyToJSON(await handle.fetchHistory())) as { events: unknown[] };
  const { runId } = await handle.describe();
  const lines = events.map((event) => JSON.stringify(scrubbed(ownRunId(event, runId))));
  const text = `{"events":[\n${lines.join(",\n")}\n]}\n`;
  mkdirSync(HISTORIES, { recursive: true });
  const path = join(HISTORIES, `${shape}.json`);
  writeFileSync(path, text);
  return path;
}

/** Replay takes this id for the run's own; after a reset, Temporal leaves there the first run's. */
function ownRunId(event: unknown, runId: string): unknown {
  const { workflowExecutionStartedEventAttributes: started } = event as Readonly<Record<string, object>>;
  return started === undefined
    ? event
    : {
        ...(event as object),
        workflowExecutionStartedEventAttributes: { ...started, originalExecutionRunId: runId },
      };
}

export function recordedHistories(): RecordedHistory[] {
  const names = readdirSync(HISTORIES).filter((name) => name.endsWith(".json"));
  return names.toSorted().map((name) => {
    const text = readFileSync(join(HISTORIES, name), "utf8");
    return {
      shape: basename(name, ".json"),
      text,
      history: JSON.parse(text) as RecordedHistory["history"],
    };
  });
}

/** A history's text with its payloads readable, to search it for what it must not contain. */
export function readable(history: unknown): string {
  return JSON.stringify(history, (key, value: unknown) =>
    key === "data" && typeof value === "string" ? Buffer.from(value, "base64").toString() : value,
  );
}

function scrubbed(value: unknown): unknown {
  if (typeof value === "string") return value.replaceAll(IDENTITY, "worker");
  if (Array.isArray(value)) return value.map(scrubbed);
  if (typeof value !== "object" || value === null) return value;
  const fields = Object.entries(value).filter(([key]) => !WHERE.has(key));
  return Object.fromEntries(fields.map(([key, field]) => [key, scrubbed(field)])) as unknown;
}
