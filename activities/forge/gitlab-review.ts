/**
 * A review on GitLab: drafts of all its notes, which only their author sees, published together, so that people get one notice. Source:
 * docs.gitlab.com/api/draft_notes, /api/merge_requests (diff versions), /api/merge_request_approvals.
 */
import { askForge, askPages, ForgeRefusal, type ForgeCall } from "./calls.ts";
import type { ReviewComment, ReviewOrder } from "./forge.ts";
import { gitlabProject } from "./gitlab-facts.ts";

const request = (call: ForgeCall, number: number) => `${gitlabProject(call)}/merge_requests/${number}`;

/**
 * Drafts that an earlier attempt has left are used. A change of the verdict `request-changes` has no call: its words say it.
 * @throws ForgeRefusal
 */
export async function gitlabReview(
  call: ForgeCall,
  number: number,
  { commit, verdict, text, comments }: ReviewOrder,
): Promise<ReviewOrder["verdict"]> {
  const path = request(call, number);
  const before = await drafts(call, path);
  const version = comments.length === 0 ? undefined : await versionOf(call, path, commit);
  const own = new Set<number>();
  // The summary last: where it is, all is.
  for (const { note, position } of [
    ...comments.map((comment) => ({ note: comment.text, position: version && positionOf(comment, version) })),
    { note: text, position: undefined },
  ]) {
    const known = before.find((draft) => draft.note === note);
    own.add(known?.id ?? (await addDraft(call, path, { note, position })));
  }
  await publish(call, path, own);
  if (verdict !== "approve") return "comment";
  try {
    await askForge(call, "POST", `${path}/approve`, { sha: commit });
    return "approve";
  } catch (error) {
    // The head has moved, or it may not: the notes are there, and say what they say.
    if (!(error instanceof ForgeRefusal)) throw error;
    return "comment";
  }
}

const drafts = async (call: ForgeCall, path: string) =>
  (await askPages(call, `${path}/draft_notes`)) as readonly DraftAnswer[];

/** A place that it does not take is written in front of the text. */
async function addDraft(
  call: ForgeCall,
  path: string,
  fields: { readonly note: string; readonly position: Position | undefined },
): Promise<number> {
  try {
    const { id } = (await askForge(call, "POST", `${path}/draft_notes`, fields)) as DraftAnswer;
    return id;
  } catch (error) {
    const { position } = fields;
    const isPlace = error instanceof ForgeRefusal && (error.status === 400 || error.status === 422);
    if (!isPlace || position === undefined) throw error;
    const line = position.new_line ?? position.old_line ?? 0;
    const note = `\`${position.new_path.replaceAll("`", "'")}:${line}\` ${fields.note}`;
    return addDraft(call, path, { note, position: undefined });
  }
}

/** All at once, unless a person who uses the same account has drafts of their own. */
async function publish(call: ForgeCall, path: string, own: ReadonlySet<number>): Promise<void> {
  const all = await drafts(call, path);
  if (all.every(({ id }) => own.has(id))) {
    await askForge(call, "POST", `${path}/draft_notes/bulk_publish`);
    return;
  }
  for (const id of own) await askForge(call, "PUT", `${path}/draft_notes/${id}/publish`);
}

/** The diff that has that head; undefined if the forge has none. */
async function versionOf(call: ForgeCall, path: string, commit: string): Promise<VersionAnswer | undefined> {
  const versions = (await askPages(call, `${path}/versions`)) as readonly VersionAnswer[];
  return versions.find(({ head_commit_sha: head }) => head === commit);
}

/** An unchanged line has both numbers, a changed one that of its side. Of several lines, it takes the first. */
function positionOf({ oldPath, newPath, first }: ReviewComment, version: VersionAnswer): Position {
  return {
    position_type: "text",
    base_sha: version.base_commit_sha,
    start_sha: version.start_commit_sha,
    head_sha: version.head_commit_sha,
    old_path: oldPath,
    new_path: newPath,
    old_line: first.old,
    new_line: first.new,
  };
}

interface Position {
  readonly position_type: "text";
  readonly base_sha: string;
  readonly start_sha: string;
  readonly head_sha: string;
  readonly old_path: string;
  readonly new_path: string;
  readonly old_line: number | undefined;
  readonly new_line: number | undefined;
}

interface VersionAnswer {
  readonly head_commit_sha: string;
  readonly base_commit_sha: string;
  readonly start_commit_sha: string;
}

interface DraftAnswer {
  readonly id: number;
  readonly note: string;
}
