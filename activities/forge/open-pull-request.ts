/**
 * Opens a branch's pull request on whatever forge: looked up by branch, else made; looked up again if another client was faster. What
 * a person may have changed (title, text, draft, target, state) stays theirs: only the block that we wrote is written again.
 */
import { createHash } from "node:crypto";
import { type ForgePlace, usualHost } from "../config/git-settings.ts";
import { ForgeRefusal, type ForgeCall } from "./calls.ts";
import type { Forge, KnownPullRequest, PullRequestOrder } from "./forge.ts";
import { atPresentName, adapterFor } from "./forges.ts";

export interface PullRequest extends Omit<PullRequestOrder, "text"> {
  /** The session that opens it: the block in the text is for it alone. */
  readonly session: string;
  /** The commit that the branch has. */
  readonly commit: string;
  /** What the session says: its block in the text. */
  readonly body: string;
}

export interface OpenedPullRequest {
  readonly url: string;
  readonly number: number;
  readonly created: boolean;
  /** A person has closed or merged it, and it stays so. */
  readonly state?: "closed" | "merged";
  /** Whether its text has the session's block. */
  readonly isOwn: boolean;
  /** Undefined if the forge does not say. */
  readonly isDraft?: boolean | undefined;
}

/** Opens the branch's pull request, or updates what the session wrote into the open one. @throws ForgeRefusal */
export function openPullRequest(call: ForgeCall, request: PullRequest): Promise<OpenedPullRequest> {
  return atPresentName(call, undefined, (at) => openAt(at, adapterFor(at), request));
}

async function openAt(call: ForgeCall, forge: Forge, request: PullRequest): Promise<OpenedPullRequest> {
  const known = await found(call, forge, request);
  if (known !== undefined) return known;
  const { session, body, branch, into, title, draft } = request;
  try {
    const text = newBlock(session, body);
    const made = await forge.createPullRequest(call, { branch, into, title, draft, text });
    const { url, number, isDraft } = made;
    return { url, number, created: true, isOwn: true, isDraft };
  } catch (error) {
    if (!(error instanceof ForgeRefusal)) throw error;
    // Another client was faster, or the answer to an earlier attempt was lost.
    const other =
      error.status === 409 || error.status === 422 ? await found(call, forge, request) : undefined;
    if (other !== undefined) return other;
    if (!draft || !/draft/i.test(error.message)) throw error;
    const fix = `Without a draft: longhaul pr ${session}, or --pr ready for a new session`;
    throw new ForgeRefusal(error.status, `${error.message}. ${fix}`);
  }
}

/** What a new pull request gets besides its text. */
export interface PullRequestExtras {
  readonly labels: readonly string[];
  /** Names on the forge, or `organisation/team`. */
  readonly reviewers: readonly string[];
  readonly assignee: string | undefined;
  readonly isDraft: boolean;
  /** What could not even be asked for. */
  readonly remarks: readonly string[];
}

/** Nothing of it keeps a pull request from being delivered. @returns what was not had, in words for people */
export async function addExtras(
  call: ForgeCall,
  { number, isDraft }: Pick<OpenedPullRequest, "number" | "isDraft">,
  extras: PullRequestExtras,
): Promise<readonly string[]> {
  const remarks = [...extras.remarks];
  if (extras.isDraft && isDraft === false)
    remarks.push("it is no draft: the server marks drafts in another way, and keeps it open for a merge");
  const { assignee } = extras;
  await atPresentName(call, undefined, async (at) => {
    const forge = adapterFor(at);
    const orders = [
      ...extras.labels.map(
        (label) => [`the label ${label}`, () => forge.addLabel(at, number, label)] as const,
      ),
      ...extras.reviewers.map(
        (name) => [`the reviewer ${name}`, () => forge.askByName(at, number, name)] as const,
      ),
      ...(assignee === undefined
        ? []
        : [[`the assignee ${assignee}`, () => forge.assign(at, number, assignee)] as const]),
    ];
    for (const [what, order] of orders) {
      const why = await order().then((did) => (did.done ? undefined : did.why), reasonIn);
      if (why !== undefined) remarks.push(`not set: ${what} (${why})`);
    }
  });
  return remarks;
}

/** @throws what the forge did not say, such as a cancellation, and where the repository is now */
function reasonIn(error: unknown): string {
  if (!(error instanceof ForgeRefusal) || error.movedTo !== undefined) throw error;
  return error.message;
}

/** The issue of this very repository whose address is in a task; undefined if there is none, or more than one. */
export function linkedIssue(task: string, url: string, { project }: ForgePlace): number | undefined {
  const web = URL.parse(url);
  const host = usualHost(web?.hostname || /^[^@/]+@([^:/]+):/.exec(url)?.[1] || "");
  // A server may be below a path, which only an address of the web says.
  const isWeb = web !== null && /^https?:$/.test(web.protocol);
  const own = (isWeb ? web.pathname : project).replace(/^\/+|(\.git)?\/*$/g, "").toLowerCase();
  const numbers = new Set<number>();
  for (const [address] of task.matchAll(/https?:\/\/[^\s<>"'`)\]]+/g)) {
    const named = URL.parse(address);
    const [, path = "", number] =
      /^\/(.+?)(?:\/-)?\/(?:issues|work_items)\/(\d{1,10})\/?$/.exec(
        named?.pathname.replace(/[.,;:!?]+$/, "") ?? "",
      ) ?? [];
    const isHere = usualHost(named?.hostname ?? "") === host && path.toLowerCase() === own;
    if (number !== undefined && isHere) numbers.add(Number(number));
  }
  const [only] = numbers;
  return numbers.size === 1 ? only : undefined;
}

/** The open one; else one that a person closed, or that was merged with this very commit. */
async function found(
  call: ForgeCall,
  forge: Forge,
  request: PullRequest,
): Promise<OpenedPullRequest | undefined> {
  const listed = await forge.pullRequestsFrom(call, request.branch);
  const isOwn = ({ text }: KnownPullRequest) => blockIn(text, request.session) !== undefined;
  const prefer = (one: KnownPullRequest, other: KnownPullRequest) =>
    Number(isOwn(other)) - Number(isOwn(one)) ||
    Number(other.into === request.into) - Number(one.into === request.into);
  const [open] = listed.filter(({ state }) => state === "open").toSorted(prefer);
  const ended = listed.find(
    ({ state, commit }) => state === "closed" || (state === "merged" && commit === request.commit),
  );
  const one = open ?? ended;
  if (one === undefined) return undefined;
  const { url, number, state, text, isDraft } = one;
  const now = withBlock(text, request.session, request.body);
  if (state === "open" && now !== text) await forge.writeText(call, number, now);
  return {
    url,
    number,
    created: false,
    isOwn: isOwn(one),
    isDraft,
    state: state === "open" ? undefined : state,
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
