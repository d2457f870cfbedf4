/** Reads a report's data from the store: the trajectory, usage, the change, and the pictures that the agent viewed. */
import { calculateBudget } from "../../activities/config/budget.ts";
import { buildPrefix } from "../../activities/context/request.ts";
import { wasReported } from "../../activities/store/reported.ts";
import type { SessionEvent } from "../../activities/store/event.ts";
import { readEvents } from "../../activities/store/events.ts";
import { findFollow, listFollowRounds } from "../../activities/store/follows.ts";
import { findSession } from "../../activities/store/sessions.ts";
import { traceOf } from "../../activities/store/traces.ts";
import { noSuchSession } from "../console/errors.ts";
import { productVersion } from "../console/program.ts";
import { costOfCall, isSaid, trajectoryDocument } from "../sessions/transcript.ts";
import { requireSession } from "../sessions/with-session.ts";
import { followStatus } from "../view/followed-words.ts";
import { sessionStates } from "../workspace/pull-workspace.ts";
import { diffWorkspaces } from "../workspace/workspace-diff.ts";
import type { ReportData } from "./report-page.ts";
import { blobId, loadBlobs } from "../../activities/store/blobs.ts";
import type { FilePart, ToolResultPart, UserPart } from "../../activities/contract/message.ts";
import { readWhole } from "../../activities/store/reading.ts";
import { pictureOwner, type CallEnd, type Picture } from "./timeline.ts";
import type { Services } from "../connect/connection.ts";

type Whole = Awaited<ReturnType<typeof readWhole>>;

/** Total size of a page's pictures, so that it can be sent by mail. Source: providers accept attachments of 20 to 25 MB. */
const MAX_PICTURE_BYTES = 12_000_000;
/** Media types that a browser displays without running anything. */
const DRAWN = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

/** The content of a session's report. @throws ClientError (impossible) if there is no such session */
export async function gather(services: Pick<Services, "store">, id: string): Promise<ReportData> {
  const { db } = services.store;
  const session = await requireSession(services, id);
  const known = await findSession(db, id);
  if (known === undefined) throw noSuchSession(id);
  const whole = await readWhole(db, id);
  const { config } = known;
  const bills = whole.modelCalls.filter((call) => call.inputTokens !== null);
  type Bill = (typeof bills)[number];
  const sum = (pick: (call: Bill) => number | null) =>
    bills.reduce((total, call) => total + (pick(call) ?? 0), 0);
  const isEstimate = (call: Bill) => call.inputTokens === null && call.status === "wasted";
  const estimatedUsd = whole.modelCalls
    .filter(isEstimate)
    .reduce((total, call) => total + (call.costUsd ?? 0), 0);
  const paid = bills.map((call) => costOfCall(call, config));
  const followRounds = await listFollowRounds(db, id);
  const { before, after } = (await sessionStates(db, id)) ?? { before: [], after: [] };
  return {
    session,
    model: config.model,
    traceId: session.runId && (await traceOf(db, session, session.runId)).traceId,
    steps: trajectoryDocument(session, whole, productVersion()).steps.filter(isSaid),
    rounds: whole.compactionEvents,
    events: await wordedEvents(db, session, whole.messages),
    usage: {
      calls: whole.modelCalls.length,
      input: sum((call) => call.inputTokens),
      cached: sum((call) => call.cachedTokens),
      output: sum((call) => call.outputTokens),
      costUsd: paid.includes(null)
        ? null
        : paid.reduce<number>((total, cost) => total + (cost ?? 0), estimatedUsd),
      estimatedUsd,
    },
    usageDoubtful: await wasReported(db, id, "usageDoubtful"),
    contextWindow: config.contextWindow,
    triggerTokens: calculateBudget(config, buildPrefix(known).tokens).triggerTokens,
    calls: { facts: callFacts(whole.toolCalls), pictures: await shownPictures(db, whole.messages) },
    costs: bills
      .filter((call) => call.purpose === "step" && call.status === "kept")
      .map((call) => ({
        step: call.step,
        input: call.inputTokens ?? 0,
        cached: call.cachedTokens ?? 0,
        output: call.outputTokens ?? 0,
        costUsd: costOfCall(call, config),
      })),
    patch: diffWorkspaces(before, after, { binaries: "named" }).patch,
    follow: followStatus(await findFollow(db, id), followRounds),
    followRounds,
    madeAt: new Date(),
  };
}

/** The events that the page words: each compaction, and the session's end unless it goes on. */
/** Of verifications only those of steps that nobody went back behind. */
async function wordedEvents(
  db: Services["store"]["db"],
  { id, endedAt }: ReportData["session"],
  messages: Whole["messages"],
) {
  const live = new Map(
    messages
      .filter(({ role, supersededEpoch }) => role === "assistant" && supersededEpoch === null)
      .map(({ step, epoch }) => [step, epoch]),
  );
  const isWorded = ({ type, step, epoch }: SessionEvent) =>
    type === "context:compressed" ||
    (type === "verify:ended" && epoch >= (live.get(step) ?? Number.POSITIVE_INFINITY));
  const worded: SessionEvent[] = [];
  let end: SessionEvent | undefined;
  for (let after = 0; ;) {
    const events = await readEvents(db, id, after);
    worded.push(...events.filter(isWorded));
    end = events.findLast(({ type }) => type === "session:ended") ?? end;
    after = events.at(-1)?.seq ?? after;
    if (events.length === 0) return end === undefined || endedAt === null ? worded : [...worded, end];
  }
}

function callFacts(calls: Whole["toolCalls"]): Map<string, CallEnd> {
  return new Map(
    calls
      .filter(({ supersededEpoch }) => supersededEpoch === null)
      .map(({ callId, exitCode, startedAt, finishedAt }) => [
        callId,
        { exitCode, ms: startedAt && finishedAt ? finishedAt.getTime() - startedAt.getTime() : undefined },
      ]),
  );
}

/** Pictures by call or by person's message; the newest are omitted if the total would be too large. */
async function shownPictures(
  db: Services["store"]["db"],
  messages: Whole["messages"],
): Promise<Map<string, Picture[]>> {
  const parts = messages
    .filter(({ role, supersededEpoch }) => (role === "tool" || role === "user") && supersededEpoch === null)
    .flatMap(({ role, sequence, content }) =>
      role === "tool"
        ? (content as ToolResultPart[]).flatMap(({ toolCallId: owner, files = [] }) =>
            files.map((file) => ({ owner, file })),
          )
        : (content as UserPart[])
            .filter((part) => part.type === "file")
            .map((file) => ({ owner: pictureOwner(sequence), file })),
    )
    .filter(({ file }) => DRAWN.has(file.mediaType));
  const stored = await loadBlobs(db, [...new Set(parts.flatMap(({ file }) => blobId(file) ?? []))]);
  const pictures = new Map<string, Picture[]>();
  let pictureChars = 0;
  for (const { owner, file } of parts) {
    const base64 = base64Of(file, stored);
    if (base64 === undefined || pictureChars + base64.length > MAX_PICTURE_BYTES) continue;
    pictureChars += base64.length;
    pictures.set(owner, [...(pictures.get(owner) ?? []), { mediaType: file.mediaType, base64 }]);
  }
  return pictures;
}

function base64Of(file: FilePart, stored: ReadonlyMap<string, Uint8Array>): string | undefined {
  const id = blobId(file);
  if (id === undefined) return /^[\w+/=]+$/.test(file.data) ? file.data : undefined;
  const bytes = stored.get(id);
  return bytes && Buffer.from(bytes).toString("base64");
}
