/** GitHub with one pull request: the calls of which following is made, as strict as GitHub itself. Source: docs.github.com/rest, /graphql. */
import type { components } from "@octokit/openapi-types";
import { BASE_QUERY, QUEUE_QUERY, VIEWER_QUERY } from "../../../activities/forge/github-graphql.ts";
import { REPLY_QUERY, RESOLVE_QUERY, THREADS_QUERY } from "../../../activities/forge/github-threads.ts";
import {
  newestChecks,
  PEOPLE,
  type KeptCheck,
  type KeptComment,
  type KeptPull,
  type KeptThread,
  type Person,
} from "./kept-pull.ts";
import { notFound, ok, paged, refused, textField, type Answered, type Route } from "./routes.ts";
import type { Some } from "./some.ts";

type GitHub = components["schemas"];

/** Source: a comment of more is refused with 422. */
const MAX_BODY_CHARS = 65_536;
const REPOSITORY = { id: 5, full_name: "acme/app" };
const user = ({ login, id, isBot }: Person) =>
  ({ login, id, type: isBot === true ? "Bot" : "User" }) satisfies Some<GitHub["simple-user"]>;

export function githubRoutes(pull: KeptPull, origin: () => string): readonly Route[] {
  const repo = (path: string) => new RegExp(`^/repos/acme/app${path}$`);
  const known = (answer: () => Answered) => (pull.isOpened ? answer() : notFound);
  return [
    ["GET", repo(""), () => ok(REPOSITORY)],
    ["GET", /^\/repositories\/5$/, () => ok(REPOSITORY)],
    ["GET", repo("/pulls"), ({ query }) => listed(pull, query)],
    ["POST", repo("/pulls"), ({ fields }) => opened(pull, fields)],
    ["GET", repo("/pulls/1"), () => known(() => ok(pullAnswer(pull)))],
    [
      "PATCH",
      repo("/pulls/1"),
      ({ fields }) =>
        known(() => {
          if (typeof fields["body"] === "string") pull.text = fields["body"];
          return ok(pullAnswer(pull));
        }),
    ],
    [
      "GET",
      repo("/commits/([0-9a-f]{40})/check-runs"),
      ({ query }, [commit = ""]) => runsOf(pull, commit, query),
    ],
    ["GET", repo("/commits/([0-9a-f]{40})/status"), () => ok({ statuses: [] })],
    ["GET", repo("/rules/branches/main"), () => ok([])],
    [
      "GET",
      repo("/branches/main"),
      () => ok({ protection: { required_status_checks: { contexts: pull.required } } }),
    ],
    ["GET", repo("/pulls/1/reviews"), ({ query }) => ok(paged(pull.reviews.map(reviewAnswer), query))],
    ["POST", repo("/pulls/1/requested_reviewers"), ({ fields }) => reviewerAsked(pull, fields)],
    ["GET", repo("/collaborators/([^/]+)/permission"), (_asked, [login]) => permissionOf(login)],
    ["GET", repo("/issues/1/comments"), ({ query }) => commentsOf(pull, query)],
    ["POST", repo("/issues/1/comments"), ({ fields }) => commented(pull, fields)],
    ...jobRoutes(pull, repo, origin),
    ["POST", /^\/graphql$/, ({ fields }) => graphQl(pull, fields)],
  ];
}

function jobRoutes(pull: KeptPull, repo: (path: string) => RegExp, origin: () => string): readonly Route[] {
  const of = (id: string | undefined, answer: (check: KeptCheck) => Answered) => {
    const check = pull.checks.find((one) => String(one.id) === id);
    return check === undefined ? notFound : answer(check);
  };
  return [
    ["GET", repo("/check-runs/(\\d+)"), (_asked, [id]) => of(id, (check) => ok(runAnswer(check)))],
    ["GET", repo("/check-runs/(\\d+)/annotations"), () => ok([])],
    ["GET", repo("/actions/jobs/(\\d+)"), (_asked, [id]) => of(id, (check) => ok(jobAnswer(check)))],
    [
      "GET",
      repo("/actions/jobs/(\\d+)/logs"),
      (_asked, [id]) =>
        of(id, ({ log }) =>
          log === ""
            ? refused(410, "Gone")
            : { status: 302, headers: { location: `${origin()}/logs/${id}` } },
        ),
    ],
    [
      "POST",
      repo("/actions/jobs/(\\d+)/rerun"),
      (_asked, [id]) =>
        of(id, (check) => {
          pull.reruns.push(check.id);
          pull.report(check.commit, { name: check.name, result: "running" });
          return ok({}, 201);
        }),
    ],
  ];
}

function listed(pull: KeptPull, query: URLSearchParams): Answered {
  // Without the owner, GitHub ignores the filter.
  const [owner, branch] = (query.get("head") ?? "").split(":");
  const isListed = pull.isOpened && (owner !== "acme" || branch === pull.branch);
  return ok(isListed ? [pullAnswer(pull)] : []);
}

function opened(pull: KeptPull, fields: Readonly<Record<string, unknown>>): Answered {
  const [title, head, base] = ["title", "head", "base"].map((name) =>
    textField(fields, name, MAX_BODY_CHARS),
  );
  if (pull.isOpened) return refused(422, `A pull request already exists for acme:${head}.`);
  if (pull.remote.at(`refs/heads/${head}`) === undefined) return refused(422, "head: invalid");
  Object.assign(pull, { isOpened: true, title, branch: head, into: base, text: fields["body"] ?? "" });
  pull.isDraft = fields["draft"] === true;
  return ok(pullAnswer(pull), 201);
}

function pullAnswer(pull: KeptPull) {
  const commit = pull.head();
  return {
    number: 1,
    html_url: "https://github.example/acme/app/pull/1",
    title: pull.title,
    body: pull.text,
    state: pull.state === "open" ? "open" : "closed",
    merged: pull.state === "merged",
    merged_at: pull.state === "merged" ? "2026-11-27T00:00:00Z" : null,
    merge_commit_sha: pull.mergeCommit ?? null,
    draft: pull.isDraft,
    // It is not computed once it is closed.
    mergeable: pull.state === "open" ? pull.isMergeable() : null,
    user: user(PEOPLE.bot),
    labels: pull.labels.map((name) => ({ name })),
    head: {
      ref: pull.branch,
      sha: commit,
      repo: pull.fork === undefined ? REPOSITORY : { id: 6, full_name: pull.fork },
    },
    base: { ref: pull.into, sha: pull.remote.at(`refs/heads/${pull.into}`) ?? "", repo: REPOSITORY },
  } satisfies Some<GitHub["pull-request"]>;
}

const CONCLUSIONS = { failed: "failure", good: "success", held: "action_required" } as const;

function runAnswer({ id, name, result }: KeptCheck) {
  const page = `https://github.example/acme/app/actions/runs/1/job/${id}`;
  return {
    id,
    name,
    status: result === "running" ? "in_progress" : "completed",
    conclusion: result === "running" ? null : CONCLUSIONS[result],
    html_url: page,
    details_url: page,
    app: { slug: "github-actions" },
    output: { title: null, summary: null, text: null, annotations_count: 0 },
  } satisfies Some<GitHub["check-run"]>;
}

function runsOf(pull: KeptPull, commit: string, query: URLSearchParams): Answered {
  if (pull.remote.at(`${commit}^{commit}`) === undefined)
    return refused(422, `No commit found for SHA: ${commit}`);
  const rows = newestChecks(pull, commit).map(runAnswer);
  return ok({ total_count: rows.length, check_runs: paged(rows, query) });
}

function jobAnswer({ id, steps }: KeptCheck) {
  return {
    id,
    check_run_url: `https://api.github.example/repos/acme/app/check-runs/${id}`,
    steps: steps.map(({ name, result, from, to }, index) => ({
      name,
      number: index + 1,
      status: "completed" as const,
      conclusion: CONCLUSIONS[result],
      started_at: from,
      completed_at: to,
    })),
  } satisfies Some<GitHub["job"]>;
}

const STATES = { changes: "CHANGES_REQUESTED", approved: "APPROVED", commented: "COMMENTED" } as const;

const reviewAnswer = ({ id, by, verdict, text, commit }: KeptPull["reviews"][number]) =>
  ({
    id,
    user: user(by),
    state: STATES[verdict],
    body: text,
    commit_id: commit,
  }) satisfies Some<GitHub["pull-request-review"]>;

function permissionOf(login: string | undefined): Answered {
  const person = Object.values<Person>(PEOPLE).find((one) => one.login === login);
  if (person === undefined) return notFound;
  return ok({ permission: person.mayWrite ? "write" : "read", user: user(person) });
}

function reviewerAsked(pull: KeptPull, fields: Readonly<Record<string, unknown>>): Answered {
  const { reviewers } = fields as { readonly reviewers?: unknown };
  if (!Array.isArray(reviewers) || reviewers.includes("bot")) return refused(422, "reviewers: invalid");
  pull.asked.push(...(reviewers as string[]));
  return ok(pullAnswer(pull), 201);
}

const commentAnswer = ({ id, by, text, at }: KeptComment) =>
  ({ id, user: user(by), body: text, updated_at: at }) satisfies Some<GitHub["issue-comment"]>;

function commentsOf({ comments }: KeptPull, query: URLSearchParams): Answered {
  const since = Date.parse(query.get("since") ?? "") || 0;
  return ok(paged(comments.filter(({ at }) => Date.parse(at) >= since).map(commentAnswer), query));
}

function commented(pull: KeptPull, fields: Readonly<Record<string, unknown>>): Answered {
  pull.comment(PEOPLE.bot, textField(fields, "body", MAX_BODY_CHARS));
  const made = pull.comments.at(-1);
  return made === undefined ? notFound : ok(commentAnswer(made), 201);
}

/** Only the queries that are checked against the published schema are known. */
function graphQl(pull: KeptPull, fields: Readonly<Record<string, unknown>>): Answered {
  const { query = "", variables = {} } = fields as { query?: string; variables?: Record<string, unknown> };
  const onPull = (value: object) =>
    variables["number"] === 1 && pull.isOpened
      ? ok({ data: { repository: { pullRequest: value } } })
      : refusedQuery("NOT_FOUND", "Could not resolve to a PullRequest");
  const thread = pull.threads.find(({ id }) => id === variables["thread"]);
  switch (query) {
    case QUEUE_QUERY:
      return onPull({ isInMergeQueue: pull.isQueued });
    case VIEWER_QUERY:
      return ok({ data: { viewer: { databaseId: PEOPLE.bot.id, login: "bot" } } });
    case THREADS_QUERY:
      return onPull({
        reviewThreads: {
          pageInfo: { hasNextPage: false, endCursor: null },
          nodes: pull.threads.map(threadNode),
        },
      });
    case BASE_QUERY:
      return ok({ data: { repository: { ref: { target: { history: { nodes: baseNodes(pull) } } } } } });
    case REPLY_QUERY: {
      if (thread === undefined) return refusedQuery("NOT_FOUND", "Could not resolve to a node");
      const made = pull.reply(thread, PEOPLE.bot, textField(variables, "body", MAX_BODY_CHARS));
      return ok({
        data: { addPullRequestReviewThreadReply: { comment: { fullDatabaseId: String(made.id) } } },
      });
    }
    case RESOLVE_QUERY:
      if (thread === undefined) return refusedQuery("NOT_FOUND", "Could not resolve to a node");
      if (thread.isResolved) return refusedQuery("UNPROCESSABLE", "The thread is resolved already");
      thread.isResolved = true;
      return ok({ data: { resolveReviewThread: { thread: { isResolved: true } } } });
    default:
      return { status: 200, body: { errors: [{ message: `Parse error: ${query.slice(0, 60)}` }] } };
  }
}

const refusedQuery = (type: string, message: string): Answered =>
  ok({ data: null, errors: [{ type, message }] });

function threadNode({ id, path, line, isResolved, comments }: KeptThread) {
  const nodes = comments.map(({ id: comment, by, text, at }) => ({
    fullDatabaseId: String(comment),
    body: text,
    updatedAt: at,
    lastEditedAt: null,
    state: "SUBMITTED",
    author: { __typename: "User", login: by.login, databaseId: by.id },
  }));
  const all = { id, path, line, originalLine: line, isResolved, isOutdated: false };
  return { ...all, first: { nodes: nodes.slice(0, 1) }, last: { nodes: nodes.slice(-49) } };
}

function baseNodes(pull: KeptPull) {
  const oid = pull.remote.at(`refs/heads/${pull.into}`) ?? "";
  const nodes = newestChecks(pull, oid).map(({ id, name, result }) => ({
    __typename: "CheckRun",
    databaseId: id,
    name,
    status: result === "running" ? "IN_PROGRESS" : "COMPLETED",
    conclusion: result === "running" ? null : CONCLUSIONS[result].toUpperCase(),
    permalink: `https://github.example/acme/app/runs/${id}`,
  }));
  return [{ oid, statusCheckRollup: nodes.length === 0 ? null : { contexts: { nodes } } }];
}
