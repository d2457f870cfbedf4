/**
 * Answering and resolving threads on GitHub, and whether they are resolved, which only its GraphQL API knows. Source:
 * docs.github.com/graphql; each query is checked against the published schema (test/unit/forge/github-queries.test.ts).
 */
import type { ForgeCall } from "./calls.ts";
import type { CommentFacts, ForgeUser, ThreadFacts } from "./facts.ts";
import { readyNow, whyNot, type Did } from "./forge.ts";
import { askGraphQl, pullVariables, type OnPull } from "./github-graphql.ts";

/** Of one thread, its first comments and its newest: what is between them was told earlier. Source: at most 100 of a list, GitHub's. */
export const THREADS_QUERY = `query ($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) {
    reviewThreads(first: 50, after: $after) {
      pageInfo { hasNextPage endCursor }
      nodes {
        id isResolved isOutdated path line originalLine
        first: comments(first: 1) { nodes { ...words } }
        last: comments(last: 49) { nodes { ...words } }
      }
    }
  } }
}
fragment words on PullRequestReviewComment {
  fullDatabaseId body updatedAt lastEditedAt state
  author { __typename login ... on User { databaseId } ... on Bot { databaseId } ... on Mannequin { databaseId } }
}`;

interface Words {
  /** A number in a text: it no longer fits into GraphQL's `Int`. */
  readonly fullDatabaseId: string | number | null;
  readonly body: string;
  readonly updatedAt: string;
  readonly lastEditedAt: string | null;
  readonly state: string;
  readonly author: {
    readonly __typename: string;
    readonly login: string;
    readonly databaseId?: number;
  } | null;
}

interface ThreadNode {
  readonly id: string;
  readonly isResolved: boolean;
  readonly isOutdated: boolean;
  readonly path: string;
  readonly line: number | null;
  readonly originalLine: number | null;
  readonly first: { readonly nodes: readonly (Words | null)[] | null };
  readonly last: { readonly nodes: readonly (Words | null)[] | null };
}

interface ThreadPage {
  readonly reviewThreads: {
    readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
    readonly nodes: readonly (ThreadNode | null)[] | null;
  };
}

/** Chosen: 1,000 threads of one pull request are read. */
const MAX_PAGES = 20;

/** Threads whose comments were sent. @throws ForgeRefusal */
export async function githubThreads(call: ForgeCall, number: number): Promise<readonly ThreadFacts[]> {
  const threads: ThreadFacts[] = [];
  let after: string | null = null;
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const { pageInfo, nodes }: ThreadPage["reviewThreads"] = await askGraphQl(
      call,
      THREADS_QUERY,
      { ...pullVariables(call, number), after },
      ({ repository }: OnPull<ThreadPage>) => repository?.pullRequest?.reviewThreads,
    );
    threads.push(...(nodes ?? []).flatMap((node) => (node === null ? [] : threadOf(node))));
    if (!pageInfo.hasNextPage) break;
    after = pageInfo.endCursor;
  }
  return threads;
}

function threadOf({ id, isResolved, isOutdated, path, line, ...node }: ThreadNode): readonly ThreadFacts[] {
  const all = [...(node.first.nodes ?? []), ...(node.last.nodes ?? [])].flatMap((one) => writtenIn(one));
  // Of a short thread, the first comment is among the last.
  const comments = all.filter(({ id: own }, at) => all.findIndex((other) => other.id === own) === at);
  if (comments.length === 0) return [];
  return [{ id, path, line: line ?? node.originalLine ?? undefined, isResolved, isOutdated, comments }];
}

/** None of one that is still written: only its author sees it. */
function writtenIn(row: Words | null): readonly CommentFacts[] {
  if (row === null || row.fullDatabaseId === null || row.state === "PENDING") return [];
  const { fullDatabaseId, author, body: text, updatedAt, lastEditedAt } = row;
  return [
    { id: Number(fullDatabaseId), author: authorOf(author), text, changedAt: lastEditedAt ?? updatedAt },
  ];
}

function authorOf(author: Words["author"]): ForgeUser | undefined {
  if (author?.databaseId === undefined) return undefined;
  return {
    id: author.databaseId,
    login: author.login,
    isBot: author.__typename === "Bot" ? true : undefined,
  };
}

export const REPLY_QUERY = `mutation ($thread: ID!, $body: String!) {
  addPullRequestReviewThreadReply(input: { pullRequestReviewThreadId: $thread, body: $body }) {
    comment { fullDatabaseId }
  }
}`;

/** @returns the comment's id. @throws ForgeRefusal */
export async function githubReply(call: ForgeCall, thread: string, body: string): Promise<number> {
  const id = await askGraphQl(
    call,
    REPLY_QUERY,
    { thread, body },
    (data: {
      readonly addPullRequestReviewThreadReply: {
        readonly comment: Pick<Words, "fullDatabaseId"> | null;
      } | null;
    }) => data.addPullRequestReviewThreadReply?.comment?.fullDatabaseId,
  );
  return Number(id);
}

export const PULL_ID_QUERY = `query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { id } }
}`;

export const READY_QUERY = `mutation ($pull: ID!) {
  markPullRequestReadyForReview(input: { pullRequestId: $pull }) { pullRequest { isDraft } }
}`;

/** Only this API can do it. @throws ForgeRefusal if it may pass */
export async function githubMakeReady(call: ForgeCall, number: number): Promise<Did> {
  try {
    const pull = await askGraphQl(
      call,
      PULL_ID_QUERY,
      pullVariables(call, number),
      ({ repository }: OnPull<{ readonly id: string }>) => repository?.pullRequest?.id,
    );
    const isDraft = await askGraphQl(
      call,
      READY_QUERY,
      { pull },
      (data: {
        readonly markPullRequestReadyForReview: {
          readonly pullRequest: { readonly isDraft: boolean } | null;
        } | null;
      }) => data.markPullRequestReadyForReview?.pullRequest?.isDraft,
    );
    return readyNow(isDraft);
  } catch (error) {
    return whyNot(error);
  }
}

export const RESOLVE_QUERY = `mutation ($thread: ID!) {
  resolveReviewThread(input: { threadId: $thread }) { thread { isResolved } }
}`;

/** Also one that is resolved already. @throws ForgeRefusal if it may pass */
export async function githubResolve(call: ForgeCall, thread: string): Promise<Did> {
  try {
    const isResolved = await askGraphQl(
      call,
      RESOLVE_QUERY,
      { thread },
      (data: {
        readonly resolveReviewThread: { readonly thread: { readonly isResolved: boolean } | null } | null;
      }) => data.resolveReviewThread?.thread?.isResolved,
    );
    return isResolved ? { done: true } : { done: false, why: "GitHub left the thread open." };
  } catch (error) {
    return whyNot(error);
  }
}
