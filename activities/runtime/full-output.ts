/** Whole outputs that are too long for the model: stored in pieces behind a handle, by which the model and people read them. */
import { saveOutputPart, storedOutputBytes } from "../store/tool-calls.ts";
import type { AgentDeps } from "./deps.ts";

/**
 * The most bytes that all full outputs of a session may take in Postgres. Chosen: eight of the longest, so that one
 * session cannot fill the database.
 */
const MAX_STORED_BYTES = 8 * 64 * 1024 * 1024;
/** An output is stored up to this length, and a note says that the rest is missing. Source: the sandbox keeps 64 MiB of a stream. */
const MAX_KEPT_CHARS = 64 * 1024 * 1024;

/** Stores the pieces behind a handle, masked. Idempotent: a second attempt writes the same parts again. */
export async function storeFullOutput(
  deps: Pick<AgentDeps, "store" | "sanitizer">,
  { sessionId, handle }: { readonly sessionId: string; readonly handle: string },
  pieces: AsyncIterable<string>,
  maxStoredBytes = MAX_STORED_BYTES,
): Promise<void> {
  const { db } = deps.store;
  if ((await storedOutputBytes(db, sessionId, handle)) >= maxStoredBytes) {
    const most = Math.ceil(maxStoredBytes / 2 ** 20);
    const note = `[This output was not kept: this session's outputs take ${most} MiB, which is all that a session may store. Write long outputs to a file instead.]`;
    await saveOutputPart(db, { sessionId, handle, part: 0, offset: 0, content: note });
    return;
  }
  const sanitizer = deps.sanitizer.stream();
  let part = 0;
  let offset = 0;
  const save = async (content: string) => {
    if (content === "") return;
    await saveOutputPart(db, { sessionId, handle, part, offset, content });
    part += 1;
    offset += content.length;
  };
  for await (const piece of pieces) {
    await save(sanitizer.push(piece));
    if (offset >= MAX_KEPT_CHARS) {
      await save("\n[The rest was not kept.]");
      return;
    }
  }
  await save(sanitizer.end());
}
