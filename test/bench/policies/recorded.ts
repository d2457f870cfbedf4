/** A session that `longhaul export` wrote, or the recorded fixture in the same form, as a trajectory to replay. */
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import type { Message, MessageKind } from "../../../activities/contract/message.ts";
import { factsOf } from "./facts.ts";
import type { Trajectory, TrajectoryCall, TrajectoryStep } from "./trajectory.ts";

type ExportedMessage = Message & {
  readonly sequence: number;
  readonly kind: MessageKind;
  readonly supersededEpoch?: number | null;
  readonly createdAt?: string;
};

interface Exported {
  readonly format: "longhaul";
  readonly messages: readonly ExportedMessage[];
}

/** A cache is empty after so long. Source: OpenAI's prompt caching guide. */
const COLD_MS = 3_600_000;

/** @throws Error if the file is not an export of a session with steps; gzip or plain */
export function readRecorded(file: string): Trajectory {
  const bytes = readFileSync(file);
  const text = (bytes[0] === 0x1f ? gunzipSync(bytes) : bytes).toString("utf8");
  const trajectory = trajectoryOf(parsed(text, file));
  if (trajectory.steps.length === 0) throw new Error(`${file} holds no step to replay.`);
  return trajectory;
}

function parsed(text: string, file: string): Exported {
  const document = JSON.parse(text) as Partial<Exported>;
  if (document.format !== "longhaul" || !Array.isArray(document.messages))
    throw new Error(`${file} is not a session of \`longhaul export\`: its own format is read, not atif.`);
  return document as Exported;
}

/**
 * The live line as it was before any compaction and prune: replaced rows are there whole, summaries are left out.
 * If the rows have no times, a person who comes back after the end of a turn finds an empty cache.
 */
export function trajectoryOf({ messages }: Exported): Trajectory {
  const live = messages
    .filter((message) => (message.supersededEpoch ?? null) === null && message.kind !== "summary")
    .toSorted((a, b) => a.sequence - b.sequence);
  const results = new Map(
    live.flatMap((message) => (message.role === "tool" ? [[message.content[0].toolCallId, message]] : [])),
  );
  const [task, ...rest] = live.filter(({ role }) => role !== "tool");
  const said = task === undefined ? [] : [textOf(task)];
  const steps: TrajectoryStep[] = [];
  let waiting: { texts: string[]; cold: boolean } = { texts: [], cold: false };
  let before = task;
  for (const message of rest) {
    if (message.role === "assistant") {
      const calls = message.content.flatMap((part): TrajectoryCall[] => {
        if (part.type !== "tool-call") return [];
        const result = results.get(part.toolCallId)?.content[0];
        const output = result?.type === "tool-result" ? result.text : "";
        const failed = result?.type === "tool-result" && result.outcome !== "completed";
        return [{ name: part.toolName, input: part.input, output, failed: failed || undefined }];
      });
      const user = waiting.texts.length > 0 ? { user: waiting.texts.join("\n\n") } : {};
      steps.push({ ...user, cold: waiting.cold || undefined, text: textOf(message), calls });
      waiting = { texts: [], cold: false };
    } else {
      if (message.kind === "guidance") said.push(textOf(message));
      waiting.texts.push(textOf(message));
      waiting.cold ||= isCold(before, message, steps.at(-1));
    }
    before = message;
  }
  return { task: said[0] ?? "", steps, facts: factsOf(said, steps) };
}

function isCold(
  before: ExportedMessage | undefined,
  message: ExportedMessage,
  last: TrajectoryStep | undefined,
): boolean {
  if (before?.createdAt !== undefined && message.createdAt !== undefined)
    return Date.parse(message.createdAt) - Date.parse(before.createdAt) > COLD_MS;
  return last !== undefined && last.calls.length === 0;
}

function textOf({ content }: Message): string {
  return content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("\n");
}
