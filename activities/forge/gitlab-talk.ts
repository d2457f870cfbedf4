/**
 * What is said on a GitLab merge request, and saying it: discussions, notes, approvals, reviewers. Source: docs.gitlab.com/api/discussions,
 * /api/notes, /api/merge_request_approvals, /api/merge_requests.
 */
import { askForge, askPages, type ForgeCall } from "./calls.ts";
import type { CommentFacts, ForgeUser, ReviewFacts, ThreadFacts } from "./facts.ts";
import { did, readyNow, requireId, requireList, whyNot, type Did } from "./forge.ts";
import { gitlabProject, gitlabUser, type GitLabUser } from "./gitlab-facts.ts";

const request = (call: ForgeCall, number: number) => `${gitlabProject(call)}/merge_requests/${number}`;

/** Discussions that can be resolved, with what people wrote in them. @throws ForgeRefusal */
export async function gitlabThreads(call: ForgeCall, number: number): Promise<readonly ThreadFacts[]> {
  const rows = (await askPages(call, `${request(call, number)}/discussions`)) as readonly DiscussionAnswer[];
  return rows.flatMap(({ id, notes }) => {
    const written = notes.filter(({ system }) => system !== true);
    const [first] = written;
    if (first === undefined || !written.some(({ resolvable }) => resolvable)) return [];
    return [
      {
        id,
        path: first.position?.new_path ?? "",
        line: first.position?.new_line ?? undefined,
        isResolved: written.every(({ resolvable, resolved }) => !resolvable || resolved === true),
        // The forge does not say.
        isOutdated: undefined,
        comments: written.map(noteOf),
      },
    ];
  });
}

const noteOf = ({ id, author, body: text, updated_at: changedAt }: NoteAnswer): CommentFacts => ({
  id,
  author: gitlabUser(author),
  text,
  changedAt,
});

/** Notes that belong to no discussion, the oldest first. @throws ForgeRefusal */
export async function gitlabConversation(
  call: ForgeCall,
  number: number,
  since?: Date,
): Promise<readonly CommentFacts[]> {
  // Of very many, the newest are read: what the forge itself notes is among them.
  const path = `${request(call, number)}/notes?sort=desc&order_by=created_at`;
  const rows = (await askPages(call, path)) as readonly NoteAnswer[];
  return rows
    .toReversed()
    .filter(({ system, resolvable }) => system !== true && !resolvable)
    .filter(({ updated_at: at }) => since === undefined || Date.parse(at) >= since.getTime())
    .map(noteOf);
}

/** What reviewers think now: there is one of each, without a text, which has the reviewer's number. @throws ForgeRefusal */
export async function gitlabReviews(call: ForgeCall, number: number): Promise<readonly ReviewFacts[]> {
  const { approved_by: approvals } = (await askForge(
    call,
    "GET",
    `${request(call, number)}/approvals`,
  )) as ApprovalsAnswer;
  const reviewers = (await askPages(call, `${request(call, number)}/reviewers`)) as readonly ReviewerAnswer[];
  const review = (user: GitLabUser, verdict: ReviewFacts["verdict"]) => ({
    id: user.id,
    author: gitlabUser(user),
    verdict,
    text: "",
    commit: undefined,
  });
  const wanting = reviewers.filter(({ state }) => state === "requested_changes");
  const others = (approvals ?? []).filter(({ user }) => !wanting.some(({ user: { id } }) => id === user.id));
  return [
    ...wanting.map(({ user }) => review(user, "changes-requested")),
    ...others.map(({ user }) => review(user, "approved")),
  ];
}

/** @returns the note's id. @throws ForgeRefusal */
export async function gitlabComment(call: ForgeCall, number: number, text: string): Promise<number> {
  return requireId(call, await askForge(call, "POST", `${request(call, number)}/notes`, { body: text }));
}

/** @returns the note's id. @throws ForgeRefusal */
export async function gitlabReply(
  call: ForgeCall,
  number: number,
  thread: string,
  text: string,
): Promise<number> {
  const path = `${request(call, number)}/discussions/${encodeURIComponent(thread)}/notes`;
  return requireId(call, await askForge(call, "POST", path, { body: text }));
}

/** @throws ForgeRefusal if it may pass */
export async function gitlabResolve(call: ForgeCall, number: number, thread: string): Promise<Did> {
  try {
    const path = `${request(call, number)}/discussions/${encodeURIComponent(thread)}?resolved=true`;
    await askForge(call, "PUT", path);
    return { done: true };
  } catch (error) {
    return whyNot(error);
  }
}

/** The title marks a draft. @throws ForgeRefusal if it may pass */
export async function gitlabMakeReady(call: ForgeCall, number: number): Promise<Did> {
  const path = request(call, number);
  const { title } = (await askForge(call, "GET", path)) as { readonly title: string };
  const ready = title.replace(/^(?:\s*(?:\[draft\]|\(draft\)|draft:))+\s*/i, "");
  if (ready === "") return { done: false, why: "its title is nothing but the mark of a draft" };
  try {
    const { draft } = (await askForge(call, "PUT", path, { title: ready })) as { readonly draft?: boolean };
    return readyNow(draft === true);
  } catch (error) {
    return whyNot(error);
  }
}

/** Who is a reviewer already cannot be asked once more by this API. @throws ForgeRefusal if it may pass */
export async function gitlabAskForReview(
  call: ForgeCall,
  number: number,
  { id, login }: ForgeUser,
): Promise<Did> {
  const path = request(call, number);
  const { reviewers } = (await askForge(call, "GET", path)) as { readonly reviewers?: readonly GitLabUser[] };
  const ids = (reviewers ?? []).map((one) => one.id);
  if (ids.includes(id))
    return { done: false, why: `${login} is a reviewer already, and GitLab's REST API asks nobody again.` };
  try {
    const answer = await askForge(call, "PUT", path, { reviewer_ids: [...ids, id] });
    const { reviewers: now } = answer as { readonly reviewers?: readonly GitLabUser[] };
    // Who may not be one is left out without a word; without a paid licence, there is one only.
    if (now?.some((one) => one.id === id) === true) return { done: true };
    return { done: false, why: `GitLab did not take ${login} as a reviewer.` };
  } catch (error) {
    return whyNot(error);
  }
}

/** GitLab has a person's number in its orders. @returns undefined if nobody has the name */
async function personNamed(call: ForgeCall, login: string): Promise<ForgeUser | undefined> {
  const people = await askForge(call, "GET", `/users?username=${encodeURIComponent(login)}`);
  const [user] = requireList(call, people) as readonly GitLabUser[];
  return user && gitlabUser(user);
}

const nobody = (name: string): Did => ({ done: false, why: `GitLab knows nobody named ${name}` });

export const gitlabAskByName = (call: ForgeCall, number: number, name: string): Promise<Did> =>
  did(async () => {
    if (name.includes("/")) return { done: false, why: `GitLab asks no groups for a review (${name})` };
    const user = await personNamed(call, name);
    return user === undefined ? nobody(name) : gitlabAskForReview(call, number, user);
  });

/** GitLab makes a label that it is given: so it is asked about before. */
export const gitlabLabel = (call: ForgeCall, number: number, label: string): Promise<Did> =>
  did(async () => {
    const known = await askForge(call, "GET", `${gitlabProject(call)}/labels/${encodeURIComponent(label)}`);
    const { name } = known as { readonly name: string };
    await askForge(call, "PUT", request(call, number), { add_labels: name });
    return undefined;
  });

export const gitlabAssign = (call: ForgeCall, number: number, login: string): Promise<Did> =>
  did(async () => {
    const user = await personNamed(call, login);
    if (user === undefined) return nobody(login);
    const path = request(call, number);
    const { assignees } = (await askForge(call, "GET", path)) as {
      readonly assignees?: readonly GitLabUser[];
    };
    const ids = [...(assignees ?? []).map((one) => one.id), user.id];
    const answer = await askForge(call, "PUT", path, { assignee_ids: ids });
    const { assignees: now } = answer as { readonly assignees?: readonly GitLabUser[] };
    const isTaken = now?.some((one) => one.id === user.id) === true;
    return isTaken ? undefined : { done: false, why: `GitLab did not take ${login} as an assignee` };
  });

interface DiscussionAnswer {
  readonly id: string;
  readonly notes: readonly NoteAnswer[];
}

interface NoteAnswer {
  readonly id: number;
  readonly author: GitLabUser | null;
  readonly body: string;
  readonly system?: boolean;
  readonly resolvable: boolean;
  readonly resolved?: boolean;
  readonly updated_at: string;
  readonly position?: { readonly new_path: string; readonly new_line: number | null } | null;
}

interface ApprovalsAnswer {
  readonly approved_by?: readonly { readonly user: GitLabUser }[] | null;
}

interface ReviewerAnswer {
  readonly user: GitLabUser;
  readonly state: string;
}
