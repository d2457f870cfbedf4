/** From rows to a request: the view, blobs inserted, media that the model does not accept replaced by text. */
import type { RunConfig } from "../config/agent-config.ts";
import { type FilePart, type Message, type StoredMessage, filesOf, withFiles } from "../contract/message.ts";
import { estimateTools } from "../contract/request-size.ts";
import { estimateText } from "../text/tokens.ts";
import { buildView } from "../transcript/view.ts";
import { blobId, loadBlobs } from "../store/blobs.ts";
import type { Queryable } from "../store/db.ts";
import type { Session } from "../store/sessions.ts";
import { toolRegistry, toolSpecs, type ToolRegistry } from "../tools/index.ts";
import { sessionTools } from "../tools/session-tools.ts";
import type { ToolSpec } from "../contract/tools.ts";

/** The part of every request before a session's messages. */
export interface Prefix {
  readonly system: string;
  readonly tools: readonly ToolSpec[];
  /** Estimated tokens of both, and of each. */
  readonly tokens: number;
  readonly systemTokens: number;
  readonly toolTokens: number;
}

/** Cache by registry: four activities need the same values. */
const measuredTools = new WeakMap<ToolRegistry, Pick<Prefix, "tools" | "toolTokens">>();

/** The part before a session's messages. */
export function buildPrefix(
  session: Pick<Session, "system" | "config" | "catalogues">,
  worker: ToolRegistry = toolRegistry,
): Prefix {
  return prefixWith(session.system, sessionTools(worker, session));
}

/** Computes the schemas and size of a set of tools once. */
export function prefixWith(system: string, registry: ToolRegistry): Prefix {
  let measured = measuredTools.get(registry);
  if (measured === undefined) {
    const tools = toolSpecs(registry);
    measured = { tools, toolTokens: estimateTools(tools) };
    measuredTools.set(registry, measured);
  }
  const { tools, toolTokens } = measured;
  const systemTokens = estimateText(system);
  return { system, tools, tokens: toolTokens + systemTokens, systemTokens, toolTokens };
}

/** System and tools in the model's own tokens, as far as their ratio to ours is learnt. */
export function prefixShares(
  { systemTokens, toolTokens }: Pick<Prefix, "systemTokens" | "toolTokens">,
  ratio = 1,
): { readonly system: number; readonly tools: number } {
  return { system: Math.round(systemTokens * ratio), tools: Math.round(toolTokens * ratio) };
}

export interface BuiltMessages {
  readonly messages: readonly Message[];
  /** Media types that the model does not accept, of files that would be shown for the first time: it gets a text instead. */
  readonly unsupported: readonly string[];
  /** The repairs that were needed, for the log. */
  readonly repairs: number;
}

/**
 * Bytes of media in one request; the oldest beyond it are replaced by words.
 * Chosen: coding agents send 8 MB in all, so that base64 stays under usual request limits.
 */
const MAX_MEDIA_BYTES = 8 * 1024 * 1024;

/**
 * The messages as they are sent. Reads blobs only if a message in view has one.
 * @param model that is asked: what belongs to another's own answers (item ids, encrypted reasoning) is left out
 */
export async function buildMessages(
  db: Queryable,
  rows: readonly StoredMessage[],
  input: RunConfig["input"],
  model?: string,
): Promise<BuiltMessages> {
  const view = buildView(rows.map((row) => asSentTo(model, row)));
  const files = view.messages.flatMap(filesOf);
  const blobs = await loadBlobs(db, [...new Set(files.map(blobId).filter((id) => id !== undefined))]);
  const unsupported = new Set<string>();
  const fresh = new Set(newFiles(rows, model).map((file) => file.data));
  // Newest first, so that the limit removes the oldest.
  let room = MAX_MEDIA_BYTES;
  const sentParts = new Map<FilePart, FilePart | string>();
  for (const file of files.toReversed()) {
    const bytes = blobs.get(blobId(file) ?? "");
    if (file.mediaType.startsWith("text/") && bytes) sentParts.set(file, new TextDecoder().decode(bytes));
    else if (!accepts(input, file.mediaType)) {
      if (fresh.has(file.data)) unsupported.add(file.mediaType);
      sentParts.set(
        file,
        `[${file.filename ?? "A file"} (${file.mediaType}) is not shown: this model does not accept such files.]`,
      );
    } else if (!bytes) sentParts.set(file, `[${file.filename ?? "A file"} is not stored any more.]`);
    else if (bytes.byteLength > room) sentParts.set(file, leftOut(file));
    else {
      room -= bytes.byteLength;
      sentParts.set(file, {
        ...file,
        data: `data:${file.mediaType};base64,${Buffer.from(bytes).toString("base64")}`,
      });
    }
  }
  const messages =
    files.length === 0 ? view.messages : view.messages.map((message) => withFiles(message, sentParts));
  return { messages, unsupported: [...unsupported], repairs: view.repairs.length };
}

/** Files that arrived since the last answer; all files if another model gave that answer. */
function newFiles(rows: readonly StoredMessage[], model: string | undefined): FilePart[] {
  const last = rows.findLast((row) => row.kind === "answer");
  const isNew = (row: StoredMessage): boolean =>
    last === undefined ||
    row.sequence > last.sequence ||
    (last.role === "assistant" && (last.model ?? model) !== model);
  return rows.filter(isNew).flatMap(filesOf);
}

function asSentTo(model: string | undefined, row: StoredMessage): StoredMessage {
  if (row.role !== "assistant" || model === undefined || (row.model ?? model) === model) return row;
  const content = row.content
    .filter((part) => part.type !== "reasoning")
    .map(({ providerOptions: _ofAnother, ...part }) => part);
  return { ...row, content };
}

/** A person's file has a name; an image that a tool showed has none, and can be shown again. */
function leftOut({ filename, mediaType }: FilePart): string {
  return filename === undefined
    ? `[An older image (${mediaType}) is left out to keep the request small; view_image shows it again.]`
    : `[${filename} (${mediaType}) is left out to keep the request small.]`;
}

function accepts(input: RunConfig["input"], mediaType: string): boolean {
  if (mediaType.startsWith("image/")) return input.includes("image");
  return mediaType === "application/pdf" && input.includes("pdf");
}
