/** The comments of a pull request's conversation that speak to the agent, by people who may tell it what to do. */
import type { FollowSettings } from "../config/follow-settings.ts";
import { ForgeRefusal, type ForgeCall } from "../forge/calls.ts";
import type { CommentFacts, ForgeUser } from "../forge/facts.ts";
import type { Forge } from "../forge/forge.ts";
import { postIn } from "../forge/post-once.ts";
import { spokenText, visibleText } from "../forge/visible-text.ts";
import type { FollowRound, FollowRow } from "../store/follows.ts";
import type { Trust } from "./trust.ts";

/**
 * `stop`: following ends, and so does a run that is on. `forget`: following ends. `continue`: it goes on after a pause. `message`: the
 * session is told.
 */
export type CommentWish = "stop" | "forget" | "continue" | "message";

/** The name that always counts, unless the settings have another. */
const DEFAULT_NAME = "longhaul";
/** Of several in one comment, the first one here counts. */
const COMMANDS = ["stop", "forget", "continue"] as const satisfies readonly CommentWish[];
/** Given elsewhere, by the session's owner: a comment approves nothing. */
const NOT_HERE = ["allow", "deny", "status", "retry"] as const;

/**
 * What the agent is called.
 * @param login of the account that its credential is; an App's is mentioned without its ending
 */
export const agentNames = (configured: string | undefined, login: string | undefined): readonly string[] =>
  configured === undefined
    ? [DEFAULT_NAME, ...(login === undefined ? [] : [login.replace(/\[bot\]$/, "")])]
    : [configured];

/**
 * `@name` counts where a word begins, `/name` where a line begins; neither in code, quotations, addresses, or what nobody sees. A
 * command has a line of its own.
 * @returns undefined if it is not for the agent
 */
export function readWish(text: string, names: readonly string[]): CommentWish | undefined {
  const spoken = spokenText(visibleText(text));
  const name = names.map((one) => one.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")).join("|");
  const commands = new RegExp(`^[ \\t]*[@/](?:${name})[ \\t]+(\\p{L}+)[ \\t]*[.!]?[ \\t]*$`, "gimu");
  const commandWords = new Set([...spoken.matchAll(commands)].map(([, word = ""]) => word.toLowerCase()));
  const command = COMMANDS.find((word) => commandWords.has(word));
  if (command !== undefined) return command;
  if (NOT_HERE.some((word) => commandWords.has(word))) return undefined;
  // `/name deny TEXT` has more on its line.
  if (new RegExp(`^[ \\t]*/(?:${name})[ \\t]+(?:allow|deny)\\b`, "imu").test(spoken)) return undefined;
  const mention = new RegExp(`(?:(?:^|[\\s(])@|^[ \\t]*/)(?:${name})(?![\\p{L}\\p{N}_-])`, "imu");
  return mention.test(spoken) ? "message" : undefined;
}

/** A comment that speaks to the agent, and was not heard before. Its text is what people see of it. */
export interface SpokenComment extends CommentFacts {
  readonly wants: CommentWish;
}

/** The forge's clock and ours differ. Chosen. */
const CLOCKS_MS = 60_000;
/** Of so many people it is asked whether they may: a crowd of strangers costs no more calls. Chosen. */
const MAX_ASKED = 20;

export interface ConversationFrom {
  readonly call: ForgeCall;
  readonly forge: Pick<Forge, "whoAmI" | "readConversation">;
  readonly number: number;
  readonly settings: Pick<FollowSettings, "name">;
  readonly postKey: string;
  readonly row: Pick<FollowRow, "sessionId" | "openedAt" | "heardFrom" | "posts">;
  readonly rounds: readonly Pick<FollowRound, "reasons">[];
}

/** The id of the comment that says that a command was heard. @param what a comment's number, or `label` */
export const stoppedPost = (what: number | "label"): string => `stopped-${what}`;

/** What was heard before counts no more when it is followed again. */
export const heardPosts = (posts: readonly string[]): string[] =>
  posts.map((post) => post.replace(/\.stopped-(?=\w+$)/, ".heard-"));

/** How a round names a comment, for an answer. */
export const mentionName = ({ id }: Pick<CommentFacts, "id">): string => `mention:${id}`;

/**
 * A comment that was told is not told again, however it is edited; one that speaks to the agent only since it was edited is new.
 * @returns the oldest first. @throws ForgeRefusal
 */
export async function readSpoken(from: ConversationFrom, trust: Trust): Promise<readonly SpokenComment[]> {
  const { call, forge, number, row, postKey } = from;
  const since = new Date(row.openedAt.getTime() - CLOCKS_MS);
  const comments = await forge.readConversation(call, number, since);
  // By its mark, not by its author: the token may be a person's own.
  const theirs = comments.filter(
    (comment) => postIn(postKey, comment.text) === undefined && !isHeard(from, comment),
  );
  if (!theirs.some(({ text }) => /[@/]/.test(text))) return [];
  const names = agentNames(from.settings.name, await loginOf(from));
  const spoken = theirs.flatMap((comment) => {
    const wants = readWish(comment.text, names);
    const isOver = (wants === "stop" || wants === "forget") && isBefore(row.heardFrom, comment);
    return wants === undefined || isOver ? [] : [{ ...comment, text: visibleText(comment.text), wants }];
  });
  return byTrusted(spoken, trust);
}

const isBefore = (from: Date, { changedAt }: CommentFacts): boolean =>
  Date.parse(changedAt) < from.getTime() - CLOCKS_MS;

function isHeard({ row, rounds }: ConversationFrom, comment: CommentFacts): boolean {
  const name = mentionName(comment);
  return (
    row.posts.includes(`${row.sessionId}.heard-${comment.id}`) ||
    rounds.some(({ reasons }) => reasons.some((one) => one.kind === "mention" && one.name === name))
  );
}

/** Undefined if the settings have a name, or the credential may not know. */
async function loginOf({ call, forge, settings }: ConversationFrom): Promise<string | undefined> {
  if (settings.name !== undefined) return undefined;
  try {
    return (await forge.whoAmI(call))?.login;
  } catch (error) {
    if (error instanceof ForgeRefusal && !error.isPassing) return undefined;
    throw error;
  }
}

/** Of a crowd, those who have spoken last are asked for. */
async function byTrusted(spoken: readonly SpokenComment[], trust: Trust): Promise<readonly SpokenComment[]> {
  const people = new Map<number, ForgeUser>();
  for (const { author } of spoken.toReversed())
    if (author !== undefined && people.size < MAX_ASKED) people.set(author.id, author);
  const trusted = new Set<number>();
  for (const person of people.values()) if (await trust.mayDirect(person)) trusted.add(person.id);
  return spoken.filter(({ author }) => author !== undefined && trusted.has(author.id));
}
