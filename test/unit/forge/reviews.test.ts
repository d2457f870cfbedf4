/**
 * Reviews as GitHub and GitLab take them: strict about fields, places and verdicts. Source: docs.github.com/rest/pulls/reviews,
 * docs.gitlab.com/api/draft_notes, /api/discussions and /api/merge_request_approvals. Gitea is asked itself (test/forge/review.test.ts).
 */
import { createServer } from "node:http";
import { text as textOf } from "node:stream/consumers";
import type { components } from "@octokit/openapi-types";
import { describe, expect, it } from "vitest";
import { parseForge } from "../../../activities/config/git-settings.ts";
import type { ReviewOrder } from "../../../activities/forge/forge.ts";
import { makeMark, reviewOnce } from "../../../activities/forge/post-once.ts";
import type { Some } from "../../support/forge/some.ts";
import { listen } from "../../support/listen.ts";

const key = "a key of this installation";
const id = "review.5.1.c1";

type Body = Readonly<Record<string, unknown>>;
type Answer = readonly [status: number, body: unknown];

/** Answers by method and path below the repository; `losing` of the answers to changes get lost. */
async function forgeOf(
  kind: "github" | "gitlab",
  answer: (method: string, path: string, body: Body) => Answer,
  losing = 0,
) {
  const seen: string[] = [];
  let left = losing;
  const server = createServer((asked, response) => {
    void (async () => {
      const sent = await textOf(asked);
      const url = new URL(asked.url ?? "/", "http://forge");
      const path = url.pathname.replace(/^\/api\/v\d(\/repos\/acme\/app|\/projects\/acme%2Fapp)/, "");
      const [status, body] =
        asked.headers.authorization === "Bearer secret"
          ? answer(asked.method ?? "GET", path, sent === "" ? {} : (JSON.parse(sent) as Body))
          : ([401, { message: "Bad credentials" }] as const);
      if (asked.method !== "GET") seen.push(`${asked.method} ${path} ${status}`);
      if (asked.method !== "GET" && status < 300 && left > 0) {
        left -= 1;
        asked.socket.destroy();
        return;
      }
      response.writeHead(status, { "content-type": "application/json" });
      response.end(status === 204 ? undefined : JSON.stringify(body));
    })();
  });
  const forge =
    parseForge(`http://127.0.0.1:${await listen(server)}/acme/app.git`, kind) ?? expect.fail("no forge");
  return { seen, call: { forge, token: "secret", signal: AbortSignal.timeout(60_000) } };
}

const at = (old: number | undefined, now: number | undefined) => ({ old, new: now });
const file = { oldPath: "before", newPath: "one" };
const wanted: ReviewOrder = {
  commit: "c1",
  verdict: "request-changes",
  text: "Summary.",
  comments: [
    { ...file, first: at(undefined, 4), last: at(undefined, 4), text: "Added." },
    { ...file, first: at(4, undefined), last: at(4, undefined), text: "Deleted." },
    { ...file, first: at(2, 3), last: at(undefined, 5), text: "Three lines." },
  ],
};
const instead: ReviewOrder = { ...wanted, verdict: "comment", text: "All of it.", comments: [] };
const post = { key, id, wanted, instead };

describe("a review on GitHub", () => {
  const right = new Set([3, 4, 5]);
  const FIELDS = new Set(["path", "body", "line", "side", "start_line", "start_side"]);

  /** One review at a time, whole or not at all. */
  const github =
    (kept: Body[], refuses?: (body: Body) => boolean) => (method: string, path: string, body: Body) => {
      const reviews = kept.map((one, index) => ({
        id: index + 1,
        user: null,
        body: String(one["body"]),
        state: "COMMENTED",
        commit_id: String(one["commit_id"]),
      }));
      if (path !== "/pulls/1/reviews") return [404, { message: "Not Found" }] as const;
      if (method === "GET")
        return [
          200,
          reviews satisfies readonly Some<components["schemas"]["pull-request-review"]>[],
        ] as const;
      const comments = body["comments"] as readonly Body[];
      const isTaken = comments.every((comment) => {
        const { line, side, start_line: from = line, start_side: start = side } = comment;
        const fits = side === "RIGHT" ? right.has(Number(line)) : line === 4;
        return (
          fits &&
          Object.keys(comment).every((name) => FIELDS.has(name)) &&
          Number(from) <= Number(line) &&
          start === side
        );
      });
      if (!isTaken || refuses?.(body) === true) return [422, { message: "Unprocessable Entity" }] as const;
      kept.push(body);
      return [200, { id: kept.length }] as const;
    };

  it("is one request, with all comments on the lines of the commit that was read", async () => {
    const kept: Body[] = [];
    const { call, seen } = await forgeOf("github", github(kept));
    expect(await reviewOnce(call, 1, post)).toEqual({
      order: wanted,
      verdict: "request-changes",
      wasThere: false,
    });
    expect(seen).toEqual(["POST /pulls/1/reviews 200"]);
    expect(kept).toEqual([
      {
        commit_id: "c1",
        event: "REQUEST_CHANGES",
        body: `Summary.\n\n${makeMark(key, id)}`,
        comments: [
          { path: "one", body: "Added.", line: 4, side: "RIGHT" },
          { path: "one", body: "Deleted.", line: 4, side: "LEFT" },
          { path: "one", body: "Three lines.", line: 5, side: "RIGHT", start_line: 3, start_side: "RIGHT" },
        ],
      },
    ]);
  });

  it("is written once, also if the answer gets lost; another head's is another one", async () => {
    const kept: Body[] = [];
    const { call } = await forgeOf("github", github(kept), 1);
    await expect(reviewOnce(call, 1, post)).rejects.toMatchObject({ isPassing: true });
    expect(await reviewOnce(call, 1, post)).toMatchObject({ wasThere: true });
    expect(kept).toHaveLength(1);
    expect(await reviewOnce(call, 1, { ...post, id: "review.5.1.c2" })).toMatchObject({ wasThere: false });
    expect(kept).toHaveLength(2);
  });

  it("has all in its summary if a line or the verdict is not taken", async () => {
    const kept: Body[] = [];
    const { call } = await forgeOf(
      "github",
      github(kept, ({ event }) => event !== "COMMENT"),
    );
    expect(await reviewOnce(call, 1, post)).toMatchObject({ verdict: "comment", order: instead });
    expect(kept).toMatchObject([{ event: "COMMENT", comments: [] }]);
    const none = await forgeOf(
      "github",
      github([], () => true),
    );
    await expect(reviewOnce(none.call, 1, post)).rejects.toMatchObject({ status: 422, isPassing: false });
  });
});

describe("a review on GitLab", () => {
  interface Draft {
    readonly id: number;
    readonly note: string;
    readonly position?: Body | undefined;
  }

  /** Only the author sees drafts; published ones are notes, each once. */
  function gitlab(foreign: readonly Draft[] = []) {
    const state = { drafts: [...foreign], notes: [] as Draft[], approvals: [] as unknown[], made: 0 };
    const takes = (position: Body | undefined): boolean => {
      if (position === undefined) return true;
      const { base_sha: base, start_sha: start, head_sha: head, new_line: now, old_line: old } = position;
      return (
        base === "b1" &&
        start === "s1" &&
        head === "c1" &&
        (now !== undefined || old !== undefined) &&
        now !== 99
      );
    };
    const answer = (method: string, path: string, body: Body): Answer => {
      const [, rest = ""] = /^\/merge_requests\/1(\/.*)$/.exec(path) ?? [];
      const order = `${method} ${rest.replace(/\d+/, "N")}`;
      const draft = state.drafts.find((one) => String(one.id) === /\d+/.exec(rest)?.[0]);
      switch (order) {
        case "GET /versions":
          return [
            200,
            [
              { head_commit_sha: "c2", base_commit_sha: "b2", start_commit_sha: "s2" },
              { head_commit_sha: "c1", base_commit_sha: "b1", start_commit_sha: "s1" },
            ],
          ];
        case "GET /approvals":
          return [200, { approved_by: [] }];
        case "GET /reviewers":
          return [200, []];
        case "GET /notes":
          return [
            200,
            state.notes.map(({ id: note, note: body, position }) => ({
              id: note,
              body,
              author: null,
              resolvable: position !== undefined,
              updated_at: "2026-11-27T08:00:00Z",
            })),
          ];
        case "GET /draft_notes":
          return [200, state.drafts];
        case "POST /draft_notes": {
          const position = body["position"] as Body | undefined;
          if (!takes(position)) return [400, { message: { line_code: ["can't be blank"] } }];
          state.made += 1;
          const made = { id: 100 + state.made, note: String(body["note"]), position };
          state.drafts.push(made);
          return [201, made];
        }
        case "POST /draft_notes/bulk_publish":
          state.notes.push(...state.drafts.splice(0));
          return [204, undefined];
        case "PUT /draft_notes/N/publish":
          if (draft === undefined) return [404, { message: "404 Not found" }];
          state.notes.push(...state.drafts.splice(state.drafts.indexOf(draft), 1));
          return [204, undefined];
        case "POST /approve":
          if (body["sha"] !== "c1") return [409, { message: "SHA does not match HEAD of source branch" }];
          state.approvals.push(body["sha"]);
          return [201, {}];
        default:
          return [404, { message: "404 Not found" }];
      }
    };
    return { state, answer };
  }

  it("is drafts that are published together, on the diff of the commit that was read", async () => {
    const { state, answer } = gitlab();
    const { call, seen } = await forgeOf("gitlab", answer);
    expect(await reviewOnce(call, 1, post)).toMatchObject({ verdict: "comment", wasThere: false });
    expect(seen.filter((line) => line.includes("publish"))).toEqual([
      "POST /merge_requests/1/draft_notes/bulk_publish 204",
    ]);
    const place = { position_type: "text", base_sha: "b1", start_sha: "s1", head_sha: "c1" };
    const paths = { old_path: "before", new_path: "one" };
    expect(state.notes.map(({ note, position }) => [note, position])).toEqual([
      ["Added.", { ...place, ...paths, new_line: 4 }],
      ["Deleted.", { ...place, ...paths, old_line: 4 }],
      ["Three lines.", { ...place, ...paths, old_line: 2, new_line: 3 }],
      [`Summary.\n\n${makeMark(key, id)}`, undefined],
    ]);
    expect(await reviewOnce(call, 1, post)).toMatchObject({ wasThere: true });
    expect(state.notes).toHaveLength(4);
  });

  it.each([1, 2, 3, 4, 5])("is published once, also if answer %j gets lost", async (lost) => {
    const { state, answer } = gitlab();
    let order = 0;
    const { call } = await forgeOf("gitlab", (...of) => {
      const result = answer(...of);
      if (of[0] !== "GET") order += 1;
      return of[0] !== "GET" && order === lost ? [502, { message: "Bad gateway" }] : result;
    });
    await expect(reviewOnce(call, 1, post)).rejects.toMatchObject({ isPassing: true });
    await reviewOnce(call, 1, post);
    expect(state.notes.map(({ note }) => note.split("\n")[0])).toEqual([
      "Added.",
      "Deleted.",
      "Three lines.",
      "Summary.",
    ]);
    expect(state.drafts).toEqual([]);
  });

  it("leaves a person's own drafts alone", async () => {
    const theirs = { id: 7, note: "Not yet." };
    const { state, answer } = gitlab([theirs]);
    const { call } = await forgeOf("gitlab", answer);
    await reviewOnce(call, 1, post);
    expect(state.drafts).toEqual([theirs]);
    expect(state.notes).toHaveLength(4);
  });

  it("names the place of a line that is not taken, and of all where the diff is gone", async () => {
    const { state, answer } = gitlab();
    const { call } = await forgeOf("gitlab", answer);
    const beyond = { ...file, first: at(undefined, 99), last: at(undefined, 99), text: "Beyond." };
    await reviewOnce(call, 1, { ...post, wanted: { ...wanted, comments: [beyond] } });
    expect(state.notes[0]).toMatchObject({ note: "`one:99` Beyond." });
  });

  it("approves only the commit that was read", async () => {
    const { state, answer } = gitlab();
    const { call } = await forgeOf("gitlab", answer);
    const approval = { ...wanted, verdict: "approve" } as const;
    expect(await reviewOnce(call, 1, { ...post, wanted: approval })).toMatchObject({ verdict: "approve" });
    expect(state.approvals).toEqual(["c1"]);
    const moved = { ...approval, commit: "c0" };
    expect(await reviewOnce(call, 1, { ...post, id: "review.5.1.c0", wanted: moved })).toMatchObject({
      verdict: "comment",
    });
  });
});
