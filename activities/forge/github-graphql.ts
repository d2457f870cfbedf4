/**
 * GitHub's other API (GraphQL), for what its REST API does not know: here the merge queue, who asks, and checks of several commits at
 * once. Source: docs.github.com/graphql; each query is checked against the published schema (test/unit/forge/github-queries.test.ts).
 */
import { askForge, ForgeRefusal, type ForgeCall } from "./calls.ts";
import { leaveAlone } from "./credential-memory.ts";
import {
  checkState,
  newestResults,
  type CheckFacts,
  type ForgeUser,
  type PullRequestFacts,
} from "./facts.ts";

/** An error in an answer whose status is 200. */
interface GraphQlError {
  readonly type?: string;
  readonly message?: string;
}

/** The status that the other API answers with. A limit passes. */
const STATUSES: ReadonlyMap<string, number> = new Map([
  ["NOT_FOUND", 404],
  ["FORBIDDEN", 403],
  ["INSUFFICIENT_SCOPES", 403],
  ["RATE_LIMITED", 429],
  ["UNPROCESSABLE", 422],
]);

/** Asked again so long after a limit for which no time is told. Chosen: GitHub asks for a minute at least. */
const LIMIT_MS = 60_000;

/**
 * @param pick what is wanted of the data. Undefined or null: it is not there
 * @throws ForgeRefusal, also where only the answer's body says so
 */
export async function askGraphQl<D, T>(
  call: ForgeCall,
  query: string,
  variables: object,
  pick: (data: D) => T | null | undefined,
): Promise<T> {
  const { forge } = call;
  // On a server of one's own, it is beside the other API.
  const api = forge.api.replace(/\/v3$/, "");
  const answer = (await askForge({ ...call, forge: { ...forge, api } }, "POST", "/graphql", {
    query,
    variables,
  })) as { readonly data?: D | null; readonly errors?: readonly GraphQlError[] } | null;
  const data = answer?.data;
  const picked = data === null || data === undefined ? undefined : pick(data);
  if (picked !== null && picked !== undefined) return picked;
  const [error] = answer?.errors ?? [];
  const status = error === undefined ? 404 : (STATUSES.get(error.type ?? "") ?? 422);
  if (status === 429) leaveAlone({ ...call, path: "/graphql" }, LIMIT_MS);
  throw new ForgeRefusal(status, `${api} answered: ${error?.message ?? "nothing is there"}`, {
    retryAfterMs: status === 429 ? LIMIT_MS : undefined,
  });
}

/** Which pull request a query is about. */
export const pullVariables = ({ forge }: ForgeCall, number: number) => {
  const [owner, name] = forge.project.split("/");
  return { owner, name, number };
};

export interface OnPull<T> {
  readonly repository: { readonly pullRequest: T | null } | null;
}

export const QUEUE_QUERY = `query ($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { pullRequest(number: $number) { isInMergeQueue } }
}`;

/** Undefined if the credential may not know, or the server has no queues. @throws ForgeRefusal if it may pass */
export async function isQueued(call: ForgeCall, number: number): Promise<boolean | undefined> {
  // Without a credential, its limit is 0: it would tell to come again, for ever.
  if (call.token === undefined) return undefined;
  try {
    return await askGraphQl(
      call,
      QUEUE_QUERY,
      pullVariables(call, number),
      ({ repository }: OnPull<{ readonly isInMergeQueue: boolean }>) =>
        repository?.pullRequest?.isInMergeQueue,
    );
  } catch (error) {
    if (error instanceof ForgeRefusal && !error.isPassing) return undefined;
    throw error;
  }
}

export const VIEWER_QUERY = `query { viewer { databaseId login } }`;

/** Of an App's token too, which the other API does not tell. @throws ForgeRefusal if it may pass */
export async function githubViewer(call: ForgeCall): Promise<ForgeUser | undefined> {
  if (call.token === undefined) return undefined;
  try {
    return await askGraphQl(
      call,
      VIEWER_QUERY,
      {},
      ({ viewer }: { readonly viewer: { readonly databaseId: number | null; readonly login: string } }) =>
        viewer.databaseId === null ? undefined : { id: viewer.databaseId, login: viewer.login },
    );
  } catch (error) {
    if (error instanceof ForgeRefusal && !error.isPassing) return undefined;
    throw error;
  }
}

/** Chosen: of the base's newest ten commits, one has mostly got results. */
export const BASE_QUERY = `query ($owner: String!, $name: String!, $branch: String!) {
  repository(owner: $owner, name: $name) { ref(qualifiedName: $branch) { target { ... on Commit {
    history(first: 10) { nodes { oid statusCheckRollup { contexts(first: 100) { nodes {
      __typename
      ... on CheckRun { databaseId name status conclusion permalink }
      ... on StatusContext { context state targetUrl }
    } } } } }
  } } } }
}`;

interface RunContext {
  readonly __typename: "CheckRun";
  readonly databaseId: number | null;
  readonly name: string;
  readonly status: string;
  readonly conclusion: string | null;
  readonly permalink: string;
}

interface StatusContext {
  readonly __typename: "StatusContext";
  readonly context: string;
  readonly state: string;
  readonly targetUrl: string | null;
}

interface BaseCommit {
  readonly oid: string;
  readonly statusCheckRollup: {
    readonly contexts: { readonly nodes: readonly (RunContext | StatusContext | null)[] | null };
  } | null;
}

interface OnBranch {
  readonly repository: {
    readonly ref: {
      readonly target: {
        readonly history?: { readonly nodes: readonly (BaseCommit | null)[] | null };
      } | null;
    } | null;
  } | null;
}

/** Of each name, the result on the base's newest commit that has one. @throws ForgeRefusal */
export async function githubBaseChecks(
  call: ForgeCall,
  { base }: Pick<PullRequestFacts, "base">,
  names: readonly string[],
): Promise<readonly CheckFacts[]> {
  if (names.length === 0) return [];
  const [owner, name] = call.forge.project.split("/");
  const branch = `refs/heads/${base.branch}`;
  const commits = await askGraphQl(
    call,
    BASE_QUERY,
    { owner, name, branch },
    ({ repository }: OnBranch) => repository?.ref?.target?.history?.nodes,
  );
  return newestResults(
    names,
    commits.map((commit) => (commit?.statusCheckRollup?.contexts.nodes ?? []).flatMap(checkOf)),
  );
}

function checkOf(context: RunContext | StatusContext | null): readonly CheckFacts[] {
  if (context === null) return [];
  const isRequired = undefined;
  if (context.__typename === "StatusContext") {
    const { context: name, state, targetUrl } = context;
    return [{ name, state: checkState(state), isRequired, url: targetUrl ?? undefined, job: undefined }];
  }
  const { databaseId, name, status, conclusion, permalink: url } = context;
  const state = status === "COMPLETED" ? checkState(conclusion) : "running";
  return [{ name, state, isRequired, url, job: databaseId === null ? undefined : String(databaseId) }];
}
