import { validate } from "@octokit/graphql-schema";
import { expect, it } from "vitest";
import { BASE_QUERY, QUEUE_QUERY, VIEWER_QUERY } from "../../../activities/forge/github-graphql.ts";
import {
  PULL_ID_QUERY,
  READY_QUERY,
  REPLY_QUERY,
  RESOLVE_QUERY,
  THREADS_QUERY,
} from "../../../activities/forge/github-threads.ts";

it.each(
  Object.entries({
    BASE_QUERY,
    PULL_ID_QUERY,
    QUEUE_QUERY,
    READY_QUERY,
    REPLY_QUERY,
    RESOLVE_QUERY,
    THREADS_QUERY,
    VIEWER_QUERY,
  }),
)("GitHub's published schema has all that %s asks for", (_name, query) => {
  expect(validate(query)).toEqual([]);
});

it("a field that does not exist is found", () => {
  expect(validate(QUEUE_QUERY.replace("isInMergeQueue", "isInQueue"))).not.toEqual([]);
});
