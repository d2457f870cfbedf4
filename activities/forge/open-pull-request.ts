/**
 * Opens a branch's pull request on whatever forge: looked up by branch, else made; looked up again if another client was faster. What
 * a person may have changed (title, text, draft, target, state) stays theirs: only the block that we wrote is written again.
 */
import { createHash } from "node:crypto";
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
    return { url: made.url, number: made.number, created: true, isOwn: true };
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
  const { url, number, state, text } = one;
  const now = withBlock(text, request.session, request.body);
  if (state === "open" && now !== text) await forge.writeText(call, number, now);
  return { url, number, created: false, isOwn: isOwn(one), state: state === "open" ? undefined : state };
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
