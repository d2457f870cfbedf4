/** The report's additions to the trajectory: the calls' outcomes, and the pictures that the agent looked at. */
import { blobId, loadBlobs } from "../../activities/store/blobs.ts";
import type { FilePart, ToolResultPart, UserPart } from "../../activities/contract/message.ts";
import type { readWhole } from "../../activities/store/reading.ts";
import { pictureOwner, type CallFacts, type Picture } from "./calls.ts";
import type { Services } from "../connect/connection.ts";

type Whole = Awaited<ReturnType<typeof readWhole>>;

/** Total size of the pictures in a page, so that it can be sent by mail. Source: providers accept attachments of 20 to 25 MB. */
const MAX_PICTURE_BYTES = 12_000_000;
/** Types that a browser draws and cannot run. */
const DRAWN = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

export function callFacts(calls: Whole["toolCalls"]): Map<string, CallFacts> {
  return new Map(
    calls
      .filter(({ supersededEpoch }) => supersededEpoch === null)
      .map(({ callId, exitCode, startedAt, finishedAt }) => [
        callId,
        { exitCode, ms: startedAt && finishedAt ? finishedAt.getTime() - startedAt.getTime() : undefined },
      ]),
  );
}

/** Pictures of calls and of a person's messages, by call or message; the newest are omitted if all would be too large. */
export async function shownPictures(
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
  let used = 0;
  for (const { owner, file } of parts) {
    const base64 = base64Of(file, stored);
    if (base64 === undefined || used + base64.length > MAX_PICTURE_BYTES) continue;
    used += base64.length;
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
