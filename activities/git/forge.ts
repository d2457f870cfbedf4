/**
 * Pull requests by the forges' own APIs: looked up by branch, else made; looked up again if another client was faster. What a
 * person may have changed (title, text, draft, target, state) stays theirs: only the block that we wrote is written again.
 */
import { createHash } from "node:crypto";
import { cutChars } from "../text/cut.ts";
import { askForge, ForgeRefusal, type ForgeCall } from "./git-http.ts";
import { serverWords } from "./trouble.ts";

const MAX_SHOWN_CHARS = 300;

export interface PullRequest {
  /** The session that opens it: the block in the text is for it alone. */
  readonly session: string;
  readonly branch: string;
  /** The commit that the branch has. */
  readonly commit: string;
  /** The branch that a new one is to be merged into. */
  readonly into: string;
  readonly title: string;
  /** What the session says: its block in the text. */
  readonly body: string;
  readonly draft: boolean;
}

export interface OpenedPullRequest {
  readonly url: string;
  readonly number: number;
  readonly created: boolean;
  /** A person has closed or merged it, and it stays so. */
  readonly state?: "closed" | "merged";
  /** Whether its text has the session's block. */
  readonly isOwn: boolean;
}

/** Opens the branch's pull request, or updates what the session wrote into the open one. @throws ForgeRefusal */
export async function openPullRequest(call: ForgeCall, request: PullRequest): Promise<OpenedPullRequest> {
  const forge = (call.forge.kind === "github" ? github : gitlab)(call.forge.project, request);
  const known = await found(call, request, forge);
  if (known !== undefined) return known;
  const { path, fields, named, read } = forge;
  try {
    const text = newBlock(request.session, request.body);
    const made = read(answerOf(await askForge(call, "POST", path, { ...fields, [named]: text }), call));
    return { url: made.url, number: made.number, created: true, isOwn: true };
  } catch (error) {
    if (!(error instanceof ForgeRefusal)) throw error;
    // Another client was faster, or the answer to an earlier attempt was lost.
    const other =
      error.status === 409 || error.status === 422 ? await found(call, request, forge) : undefined;
    if (other !== undefined) return other;
    if (!request.draft || !/draft/i.test(error.message)) throw error;
    const fix = `Without a draft: longhaul pr ${request.session}, or --pr ready for a new session`;
    throw new ForgeRefusal(error.status, `${error.message}. ${fix}`);
  }
}

/** The open one; else one that a person closed, or that was merged with this very commit. */
async function found(
  call: ForgeCall,
  request: PullRequest,
  { path, all, update, named, read }: Forge,
): Promise<OpenedPullRequest | undefined> {
  const query = new URLSearchParams(all).toString();
  const list = await askForge(call, "GET", `${path}?${query}`);
  if (!Array.isArray(list)) throw unreadable(call, list);
  const answers = list.map((one: unknown) => answerOf(one, call));
  const listed = answers.filter((answer) => isFromHere(answer, request.branch)).map(read);
  const isOwn = ({ text }: Read) => blockIn(text, request.session) !== undefined;
  const prefer = (one: Read, other: Read) =>
    Number(isOwn(other)) - Number(isOwn(one)) ||
    Number(other.into === request.into) - Number(one.into === request.into);
  const [open] = listed.filter(({ state }) => state === "open").toSorted(prefer);
  const ended = listed.find(
    ({ state, commit }) => state === "closed" || (state === "merged" && commit === request.commit),
  );
  const one = open ?? ended;
  if (one === undefined) return undefined;
  const { url, number, state, text } = one;
  const now = withBlock(text, request.session, request.body);
  if (state === "open" && now !== text) await askForge(call, update, `${path}/${number}`, { [named]: now });
  return { url, number, created: false, isOwn: isOwn(one), state: state === "open" ? undefined : state };
}

/**
 * Whether it is from this branch of this repository: lists by a branch's name have those of forks too, which anybody can make, and a
 * forge that does not know a filter lists all.
 */
function isFromHere(answer: Answer, branch: string): boolean {
  const { head, source_branch: source = head?.ref, source_project_id: from, target_project_id: to } = answer;
  if (source !== undefined && source !== branch) return false;
  // Its fork was deleted.
  if (head?.repo === null) return false;
  return from === to && head?.repo?.full_name === answer.base?.repo?.full_name;
}

/**
 * Only what has a number and an address is a request: a proxy, or a forge that has only taken the order, answers otherwise.
 * @throws ForgeRefusal, which passes: the next attempt looks whether there is one
 */
function answerOf(value: unknown, call: ForgeCall): Answer {
  const {
    html_url: page,
    web_url: url = page,
    number,
    iid = number,
  } = { ...(value as Partial<Answer> | null) };
  const isAddress = typeof url === "string" && /^https?:$/.test(URL.parse(url)?.protocol ?? "");
  if (!isAddress || !Number.isSafeInteger(iid)) throw unreadable(call, value);
  return value as Answer;
}

const unreadable = ({ forge }: ForgeCall, value: unknown) =>
  new ForgeRefusal(
    502,
    `${forge.api} did not answer with a pull request: ${serverWords(cutChars(JSON.stringify(value), MAX_SHOWN_CHARS))}`,
  );

/** What an answer says of a request: the fields of either forge. */
interface Answer {
  readonly html_url: string;
  readonly number: number;
  readonly state: string;
  readonly merged_at?: string | null;
  readonly body?: string | null;
  readonly base?: { readonly ref: string; readonly repo?: { readonly full_name: string } };
  readonly head?: {
    readonly sha: string;
    readonly ref?: string;
    readonly repo?: { readonly full_name: string } | null;
  };
  readonly web_url: string;
  readonly iid: number;
  readonly description?: string | null;
  readonly target_branch?: string;
  readonly source_branch?: string;
  readonly source_project_id?: number;
  readonly target_project_id?: number;
  readonly sha?: string;
}

interface Read {
  readonly url: string;
  readonly number: number;
  readonly state: "open" | "closed" | "merged";
  readonly text: string;
  readonly into: string | undefined;
  readonly commit: string | undefined;
}

/** A forge's requests for one pull request. */
interface Forge {
  readonly path: string;
  /** The query for all of the branch, newest first. A target would hide one whose target a person changed. */
  readonly all: Readonly<Record<string, string>>;
  /** What a new one gets besides its text. */
  readonly fields: object;
  /** The field with its text. */
  readonly named: string;
  readonly update: "PATCH" | "PUT";
  readonly read: (answer: Answer) => Read;
}

/** Source: docs.github.com/rest/pulls/pulls, version 2022-11-28. */
function github(project: string, { branch, into, title, draft }: PullRequest): Forge {
  const [owner = ""] = project.split("/");
  return {
    path: `/repos/${project}/pulls`,
    all: { state: "all", head: `${owner}:${branch}` },
    fields: { head: branch, base: into, title, draft },
    named: "body",
    update: "PATCH",
    read: ({ html_url: url, number, state, merged_at: merged, body, base, head }) => ({
      url,
      number,
      state: githubState(state, merged),
      text: body ?? "",
      into: base?.ref,
      commit: head?.sha,
    }),
  };
}

function githubState(state: string, merged: string | null | undefined): Read["state"] {
  if (state === "open") return "open";
  return typeof merged === "string" ? "merged" : "closed";
}

/** Source: docs.gitlab.com/api/merge_requests. The title marks a draft. */
function gitlab(project: string, { branch, into, title, draft }: PullRequest): Forge {
  return {
    path: `/projects/${encodeURIComponent(project)}/merge_requests`,
    all: { state: "all", source_branch: branch },
    fields: {
      source_branch: branch,
      target_branch: into,
      title: draft ? `Draft: ${title}` : title,
    },
    named: "description",
    update: "PUT",
    read: ({ web_url: url, iid: number, state, description, target_branch: target, sha }) => ({
      url,
      number,
      state: state === "merged" || state === "closed" ? state : "open",
      text: description ?? "",
      into: target,
      commit: sha,
    }),
  };
}

/** Marks the end of the part of a pull request's text that a session writes; forges do not show it. */
const END = "<!-- /longhaul -->";

/** Forges may change line ends, and blanks around a text. */
const digestOf = (text: string): string =>
  createHash("sha256").update(text.replaceAll("\r\n", "\n").trim()).digest("hex").slice(0, 16);

function newBlock(session: string, text: string): string {
  // The text is the model's: it must not end the block.
  const safe = text.replaceAll(/<!--(?=\s*\/?longhaul)/gi, "&lt;!--").trim();
  return `<!-- longhaul ${session} ${digestOf(safe)} -->\n${safe}\n${END}`;
}

/** The session's block in a text. @returns undefined if there is none, or a person has changed it */
function blockIn(text: string, session: string): string | undefined {
  for (const [block, of, digest, inner = ""] of text.matchAll(
    /<!-- longhaul (\S+) ([0-9a-f]{16}) -->\r?\n([^]*?)\r?\n<!-- \/longhaul -->/g,
  ))
    if (of === session && digestOf(inner) === digest) return block;
  return undefined;
}

/** The text with a new block in place of the session's own; unchanged if it has none. */
function withBlock(text: string, session: string, written: string): string {
  const block = blockIn(text, session);
  return block === undefined ? text : text.replace(block, () => newBlock(session, written));
}
