/** A batch's file, which has one task per line, and what of it is still to be done. */
import { createHash } from "node:crypto";
import { basename } from "node:path";
import { z } from "zod";
import { issueTexts } from "../../activities/config/issue-text.ts";
import { prioritySchema, tenantSchema } from "../../activities/config/precedence.ts";
import { cutChars } from "../../activities/text/cut.ts";
import { takeFirst } from "../../activities/text/lists.ts";
import { ClientError, exitCodes, usageError, type ExitCode } from "../console/errors.ts";
import { listNames } from "../console/format.ts";
import { plural } from "../../activities/text/format.ts";
import type { ItemRow } from "../../activities/store/batches.ts";

/** A session's id consists of the batch's name, a dash, the item's id and the attempt: at most 64 characters. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,23}$/;
const ITEM_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/;
const DIGEST_ID_CHARS = 8;
/** How many different mistakes are shown. */
const SHOWN_MISTAKES = 20;

const text = z.string().trim().min(1, "is empty");

const lineSchema = z
  .strictObject({
    id: z
      .string()
      .regex(
        ITEM_ID,
        "must begin with a letter or digit and have at most 32 letters, digits, dots, dashes and underscores",
      )
      .optional(),
    task: text.refine((task) => task !== "-", "must be text, not standard input"),
    repo: text.optional(),
    ref: text.optional(),
    workspace: text.optional(),
    model: text.optional(),
    config: text.optional(),
    priority: prioritySchema.optional(),
    tenant: tenantSchema.optional(),
  })
  .refine(({ repo, workspace }) => repo === undefined || workspace === undefined, {
    message: "repo and workspace exclude each other",
  });

export interface BatchItem extends z.output<typeof lineSchema> {
  readonly id: string;
  /** Position among the items, from 1. */
  readonly ordinal: number;
  /** Line number in the file, from 1. */
  readonly line: number;
  /** SHA-256 of the item's content. */
  readonly digest: string;
}

export interface Mistake {
  readonly line: number;
  readonly reason: string;
  /** Default: usage. */
  readonly exitCode?: ExitCode;
}

/** The items in a file's text, and the mistake in each bad line. Empty lines are skipped. */
export function parseBatch(content: string): {
  readonly items: readonly BatchItem[];
  readonly mistakes: readonly Mistake[];
} {
  const items: BatchItem[] = [];
  const mistakes: Mistake[] = [];
  const lineOf = new Map<string, number>();
  for (const [index, raw] of content
    .replace(/^\uFEFF/, "")
    .split("\n")
    .entries()) {
    const line = index + 1;
    if (raw.trim() === "") continue;
    const parsed = parseLine(raw);
    if ("reason" in parsed) {
      mistakes.push({ line, reason: parsed.reason });
      continue;
    }
    const { id, ...rest } = parsed.value;
    const digest = createHash("sha256").update(JSON.stringify(rest)).digest("hex");
    const uniqueId = id ?? freeId(cutChars(digest, DIGEST_ID_CHARS), lineOf);
    const earlier = lineOf.get(uniqueId);
    if (earlier !== undefined)
      mistakes.push({ line, reason: `id: ${uniqueId} is already used in line ${earlier}` });
    lineOf.set(uniqueId, line);
    items.push({ ...rest, id: uniqueId, ordinal: items.length + 1, line, digest });
  }
  return { items, mistakes };
}

function parseLine(
  raw: string,
): { readonly value: z.output<typeof lineSchema> } | { readonly reason: string } {
  let value: unknown;
  try {
    value = JSON.parse(raw);
  } catch (error) {
    return { reason: `is not JSON: ${(error as Error).message}` };
  }
  const result = lineSchema.safeParse(value);
  if (result.success) return { value: result.data };
  return { reason: issueTexts(result.error, lineSchema).join("; ") };
}

/** An item without an id is named after its content, so that lines can be moved and inserted. */
function freeId(id: string, usedIds: ReadonlyMap<string, number>): string {
  if (!usedIds.has(id)) return id;
  for (let count = 2; ; count += 1) if (!usedIds.has(`${id}-${count}`)) return `${id}-${count}`;
}

/** @throws ClientError if there are mistakes: (missing) if all are of that kind, else (usage) */
export function refuseMistakes(path: string, mistakes: readonly Mistake[], fix?: string): void {
  if (mistakes.length === 0) return;
  // One missing key, or a file of another format, makes every line wrong for the same reason.
  const reasons = [...Map.groupBy(mistakes, ({ reason }) => reason)];
  const { shown, more } = takeFirst(reasons, SHOWN_MISTAKES);
  const isMissing = mistakes.every(({ exitCode }) => exitCode === exitCodes.missing);
  throw new ClientError(
    isMissing ? exitCodes.missing : exitCodes.usage,
    [
      `${plural(mistakes.length, "line")} of the batch cannot be started, so nothing was started.`,
      ...shown.map(([reason, [first, ...others]]) => {
        const also = listNames(others.map(({ line }) => `line ${line}`));
        return `${path}:${first?.line}: ${reason}${also === "" ? "" : ` (also ${also})`}`;
      }),
      ...(more > 0 ? [`and ${more} more`] : []),
    ].join("\n"),
    { fix },
  );
}

/** The batch's name: the given one, else the file's. @throws ClientError (usage) */
export function batchName(chosenName: string | undefined, path: string): string {
  if (chosenName !== undefined) {
    if (NAME.test(chosenName)) return chosenName;
    throw usageError(
      `${JSON.stringify(cutChars(chosenName, 80))} cannot be a batch's name.`,
      "It begins with a letter or digit and has at most 24 letters, digits, dots, dashes and underscores.",
    );
  }
  const name = cutChars(
    basename(path)
      .replace(/\.[^.]*$/, "")
      .replaceAll(/[^A-Za-z0-9._-]+/g, "-")
      .replace(/^[^A-Za-z0-9]+/, ""),
    24,
  );
  if (NAME.test(name)) return name;
  throw usageError(`The file name of ${path} cannot serve as the batch's name.`, "Give it one: --name NAME");
}

/** Decides what remains to be done when a file is started again. */
export interface BatchPlan {
  /** Missing, failed or changed items: each gets a new session with this attempt number. */
  readonly starts: readonly { readonly item: BatchItem; readonly attempt: number }[];
  /** Positions of all other items in the file; 0 for items that it no longer contains. */
  readonly places: readonly { readonly itemId: string; readonly ordinal: number }[];
  readonly completed: number;
  /** Ids of items that changed while their sessions run. */
  readonly busy: readonly string[];
}

type Known = Pick<ItemRow, "itemId" | "digest" | "status" | "attempt">;

export function planBatch(items: readonly BatchItem[], known: readonly Known[]): BatchPlan {
  const rows = new Map(known.map((row) => [row.itemId, row]));
  const inFile = new Set(items.map(({ id }) => id));
  const isChanged = ({ id, digest }: BatchItem) => rows.get(id)?.digest !== digest;
  const isKept = (item: BatchItem) => {
    const status = rows.get(item.id)?.status;
    return !isChanged(item) && (status === "completed" || status === "running");
  };
  return {
    starts: items
      .filter((item) => !isKept(item))
      .map((item) => ({ item, attempt: nextAttempt(rows.get(item.id)) })),
    places: [
      ...items.filter(isKept).map(({ id, ordinal }) => ({ itemId: id, ordinal })),
      ...known.filter(({ itemId }) => !inFile.has(itemId)).map(({ itemId }) => ({ itemId, ordinal: 0 })),
    ],
    completed: items.filter((item) => isKept(item) && rows.get(item.id)?.status === "completed").length,
    busy: items
      .filter((item) => isChanged(item) && rows.get(item.id)?.status === "running")
      .map(({ id }) => id),
  };
}

/** An attempt that never began is repeated under the same number. */
function nextAttempt(row: Known | undefined): number {
  if (row === undefined) return 1;
  return row.status === "pending" ? Math.max(1, row.attempt) : row.attempt + 1;
}

/** Whether the file has the content that the batch was started with. */
export function isSameBatch(
  items: readonly BatchItem[],
  known: readonly Pick<ItemRow, "itemId" | "digest" | "ordinal">[],
): boolean {
  const live = known.filter(({ ordinal }) => ordinal > 0);
  const digests = new Map(live.map(({ itemId, digest }) => [itemId, digest]));
  return live.length === items.length && items.every(({ id, digest }) => digests.get(id) === digest);
}

/** The id of an item's session; the first attempt has no number. */
export const itemSessionId = (batch: string, itemId: string, attempt: number): string =>
  attempt === 1 ? `${batch}-${itemId}` : `${batch}-${itemId}.${attempt}`;
