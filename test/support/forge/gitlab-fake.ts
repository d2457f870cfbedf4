/** GitLab with one merge request: the calls of which following is made, as strict as GitLab itself. Source: docs.gitlab.com/api. */
import type {
  DiscussionNoteSchema,
  ExpandedMergeRequestSchema,
  JobSchema,
  MergeRequestReviewerSchema,
} from "@gitbeaker/core";
import {
  newestChecks,
  PEOPLE,
  type KeptComment,
  type KeptPull,
  type KeptThread,
  type Person,
} from "./kept-pull.ts";
import { notFound, ok, paged, refused, textField, type Answered, type Route } from "./routes.ts";
import type { Some } from "./some.ts";

/** Source: docs.gitlab.com/administration/instance_limits, size of comments and descriptions. */
const MAX_BODY_CHARS = 1_000_000;
const user = ({ id, login }: Person) => ({ id, username: login });

export function gitlabRoutes(pull: KeptPull): readonly Route[] {
  const project = (path: string) => new RegExp(`^/projects/acme%2Fapp${path}$`);
  const request = (path: string) => project(`/merge_requests/1${path}`);
  const known = (answer: () => Answered) => (pull.isOpened ? answer() : notFound);
  const inThread = (id: string | undefined, answer: (thread: KeptThread) => Answered) => {
    const thread = pull.threads.find((one) => one.id === id);
    return thread === undefined ? notFound : answer(thread);
  };
  return [
    ["GET", /^\/user$/, () => ok(user(PEOPLE.bot))],
    ["GET", project(""), () => ok({ id: 1, path_with_namespace: "acme/app" })],
    ["GET", /^\/projects\/1$/, () => ok({ id: 1, path_with_namespace: "acme/app" })],
    [
      "GET",
      project("/merge_requests"),
      ({ query }) =>
        ok(pull.isOpened && query.get("source_branch") === pull.branch ? [requestAnswer(pull)] : []),
    ],
    ["POST", project("/merge_requests"), ({ fields }) => opened(pull, fields)],
    ["GET", request(""), () => known(() => ok(requestAnswer(pull)))],
    ["PUT", request(""), ({ fields }) => known(() => changed(pull, fields))],
    ["GET", request("/discussions"), ({ query }) => ok(paged(discussionsOf(pull), query))],
    [
      "POST",
      request("/discussions/([^/]+)/notes"),
      ({ fields }, [id]) =>
        inThread(id, (thread) =>
          ok(noteOf(pull.reply(thread, PEOPLE.bot, textField(fields, "body", MAX_BODY_CHARS)), thread), 201),
        ),
    ],
    [
      "PUT",
      request("/discussions/([^/]+)"),
      ({ query }, [id]) =>
        inThread(id, (thread) => {
          if (query.get("resolved") !== "true") return refused(400, "resolved is missing");
          thread.isResolved = true;
          return ok({ id });
        }),
    ],
    ["GET", request("/notes"), ({ query }) => ok(paged(notesOf(pull, query), query))],
    [
      "POST",
      request("/notes"),
      ({ fields }) => {
        pull.comment(PEOPLE.bot, textField(fields, "body", MAX_BODY_CHARS));
        const made = pull.comments.at(-1);
        return made === undefined ? notFound : ok(noteOf(made), 201);
      },
    ],
    [
      "GET",
      request("/approvals"),
      () => ok({ approved_by: by(pull, "approved").map((one) => ({ user: user(one) })) }),
    ],
    ["GET", request("/reviewers"), ({ query }) => ok(paged(reviewersOf(pull), query))],
    ["GET", project("/members/all/(\\d+)"), (_asked, [id]) => memberOf(Number(id))],
    ...jobRoutes(pull, project),
  ];
}

function jobRoutes(pull: KeptPull, project: (path: string) => RegExp): readonly Route[] {
  const jobs = (commit: string) => newestChecks(pull, commit).map(jobAnswer);
  const check = (id: string | undefined) => pull.checks.find((one) => String(one.id) === id);
  const commitOf = (pipeline: string | undefined) =>
    pull.checks.find(({ commit }) => String(pipelineId(commit)) === pipeline)?.commit;
  return [
    [
      "GET",
      project("/pipelines/(\\d+)/jobs"),
      ({ query }, [id]) => {
        const commit = commitOf(id);
        return commit === undefined ? notFound : ok(paged(jobs(commit), query));
      },
    ],
    [
      "GET",
      project("/pipelines"),
      ({ query }) => {
        const commit = pull.remote.at(`refs/heads/${query.get("ref")}`) ?? "";
        return ok(jobs(commit).length === 0 ? [] : [{ id: pipelineId(commit), sha: commit }]);
      },
    ],
    [
      "GET",
      project("/jobs/(\\d+)/trace"),
      (_asked, [id]) => {
        const { log } = check(id) ?? { log: "" };
        return log === "" ? notFound : ok(log);
      },
    ],
    [
      "POST",
      project("/jobs/(\\d+)/retry"),
      (_asked, [id]) => {
        const known = check(id);
        if (known === undefined) return notFound;
        pull.reruns.push(known.id);
        pull.report(known.commit, { name: known.name, result: "running" });
        return ok({}, 201);
      },
    ],
  ];
}

/** One for each commit. */
const pipelineId = (commit: string): number => Number.parseInt(commit.slice(0, 8), 16);

function opened(pull: KeptPull, fields: Readonly<Record<string, unknown>>): Answered {
  const names = ["title", "source_branch", "target_branch"];
  const [title = "", branch, into] = names.map((name) => textField(fields, name, MAX_BODY_CHARS));
  if (pull.isOpened) return refused(409, "Another open merge request already exists for this source branch");
  if (pull.remote.at(`refs/heads/${branch}`) === undefined)
    return refused(422, "source_branch does not exist");
  Object.assign(pull, { isOpened: true, title, branch, into, text: fields["description"] ?? "" });
  pull.isDraft = title.startsWith("Draft: ");
  return ok(requestAnswer(pull), 201);
}

function changed(pull: KeptPull, fields: Readonly<Record<string, unknown>>): Answered {
  const { description, reviewer_ids: reviewers } = fields;
  if (typeof description === "string") pull.text = description;
  if (Array.isArray(reviewers))
    for (const person of Object.values<Person>(PEOPLE))
      if (reviewers.includes(person.id)) pull.asked.push(person.login);
  return ok(requestAnswer(pull));
}

function requestAnswer(pull: KeptPull) {
  const sha = pull.head();
  const pipeline = newestChecks(pull, sha).length === 0 ? null : { id: pipelineId(sha), sha, source: "push" };
  const isOpen = pull.state === "open";
  return {
    iid: 1,
    web_url: "https://gitlab.example/acme/app/-/merge_requests/1",
    title: pull.title,
    description: pull.text,
    state: isOpen ? "opened" : pull.state,
    draft: pull.isDraft,
    author: user(PEOPLE.bot),
    labels: pull.labels,
    source_branch: pull.branch,
    source_project_id: pull.fork === undefined ? 1 : 2,
    target_branch: pull.into,
    target_project_id: 1,
    sha,
    has_conflicts: isOpen && !pull.isMergeable(),
    detailed_merge_status: isOpen ? "mergeable" : "not_open",
    merge_when_pipeline_succeeds: false,
    head_pipeline: pipeline,
    reviewers: by(pull, "changes").map(user),
    squash_commit_sha: pull.mergeCommit,
  } satisfies Some<
    Omit<ExpandedMergeRequestSchema, "merge_commit_sha" | "squash_commit_sha" | "head_pipeline">
  > & {
    head_pipeline: object | null;
    squash_commit_sha: string | undefined;
  };
}

const STATUSES = { failed: "failed", good: "success", running: "running", held: "manual" } as const;

const jobAnswer = ({ id, name, result }: KeptPull["checks"][number]) =>
  ({
    id,
    name,
    status: STATUSES[result],
    allow_failure: false,
    web_url: `https://gitlab.example/acme/app/-/jobs/${id}`,
  }) satisfies Some<JobSchema>;

function noteOf({ id, by: author, text, at }: KeptComment, thread?: KeptThread) {
  return {
    id,
    author: user(author),
    body: text,
    system: false,
    resolvable: thread !== undefined,
    resolved: thread?.isResolved ?? false,
    updated_at: at,
    position: thread && { new_path: thread.path, new_line: thread.line },
  } satisfies Some<Omit<DiscussionNoteSchema, "position">> & { position?: object | undefined };
}

/** The newest first, unless it is asked otherwise. */
function notesOf({ comments, threads }: KeptPull, query: URLSearchParams) {
  const oldestFirst = [
    ...comments.map((comment) => noteOf(comment)),
    ...threads.flatMap((thread) => thread.comments.map((comment) => noteOf(comment, thread))),
  ].toSorted((one, other) => one.id - other.id);
  return query.get("sort") === "asc" ? oldestFirst : oldestFirst.toReversed();
}

/** A note of the conversation is a discussion, too. */
const discussionsOf = ({ comments, threads }: KeptPull) => [
  ...comments.map((comment) => ({ id: `D${comment.id}`, notes: [noteOf(comment)] })),
  ...threads.map((thread) => ({
    id: thread.id,
    notes: thread.comments.map((comment) => noteOf(comment, thread)),
  })),
];

/** Whose newest review says that. */
function by({ reviews }: KeptPull, verdict: KeptPull["reviews"][number]["verdict"]): readonly Person[] {
  const newest = new Map(reviews.map((review) => [review.by.id, review]));
  return [...newest.values()].filter((review) => review.verdict === verdict).map((review) => review.by);
}

const reviewersOf = (pull: KeptPull) =>
  by(pull, "changes").map(
    (person) =>
      ({ user: user(person), state: "requested_changes" }) satisfies Some<
        Omit<MergeRequestReviewerSchema, "state">
      >,
  );

function memberOf(id: number): Answered {
  const person = Object.values<Person>(PEOPLE).find((one) => one.id === id);
  return person?.mayWrite === true ? ok({ id, access_level: 30, state: "active" }) : notFound;
}
