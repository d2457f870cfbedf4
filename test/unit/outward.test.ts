/** An error without a type, as it leaves an activity: what passes by itself is tried again, and all else told at once in its own words. */
import { Suspects } from "../../activities/runtime/lost-attempts.ts";
import { CancelledFailure, ApplicationFailure } from "@temporalio/common";
import { MockActivityEnvironment } from "@temporalio/testing";
import { DefaultLogger } from "@temporalio/worker";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { inScope } from "../../activities/runtime/activity-scope.ts";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import { silentAnnouncements } from "../support/lone-deps.ts";

const SECRET = "hunter2-hunter2";
const deps = {
  announcements: silentAnnouncements,
  suspects: new Suspects(),
  heartbeatMs: 60_000,
  sanitizer: createSanitizer([SECRET]),
  store: undefined as never,
};

/** What Temporal gets when an activity's body throws. */
async function leaving(error: unknown): Promise<ApplicationFailure> {
  const environment = new MockActivityEnvironment(
    { activityType: "runTool" },
    { logger: new DefaultLogger("ERROR") },
  );
  const failure: unknown = await environment
    .run(() => inScope(deps, () => Promise.reject(error)))
    .catch((left: unknown) => left);
  if (!(failure instanceof ApplicationFailure)) throw new Error(`no failure: ${String(failure)}`);
  return failure;
}

const failed = (fields: object, message = "zq", cause?: unknown) =>
  Object.assign(new Error(message, { cause }), fields);
const named = (name: string, message: string) => failed({ name }, message);

const PASSING: readonly [string, unknown][] = [
  ["undici's broken body", new TypeError("terminated", { cause: failed({ code: "UND_ERR_SOCKET" }) })],
  ["undici's broken body without a cause", new TypeError("terminated")],
  ["a fetch without an answer", new TypeError("fetch failed", { cause: failed({ code: "ECONNRESET" }) })],
  [
    "all addresses of a host",
    new TypeError("fetch failed", {
      cause: new AggregateError([failed({ code: "ENETUNREACH" }), failed({ code: "ETIMEDOUT" })]),
    }),
  ],
  ["the engine's socket", new Error("socket hang up")],
  ["a stopped request", new DOMException("This operation was aborted", "AbortError")],
  ["a time limit", AbortSignal.abort(new DOMException("zq", "TimeoutError")).reason],
  ["our own time limit", new Error("a helper program did not end within 30 s")],
  ["a transfer that stands still", new Error("no progress for 60 s")],
  ["Postgres' connection", new Error("Connection terminated unexpectedly")],
  ["a pool that waits in vain", new Error("timeout exceeded when trying to connect")],
  ["a connection out of step", new Error("Received unexpected dataRow message from backend.")],
  ["the engine's own trouble", failed({ statusCode: 500 })],
  ["the engine, in use", failed({ statusCode: 409 })],
  ["Temporal, away", failed({ code: 14, details: "zq" })],
  ["our limit on a request to Temporal", failed({ code: 1, details: "Cancelled on client" })],
  [
    "a stream to Temporal that broke",
    failed({ code: 13, details: "Received RST_STREAM with code 2 (Internal server error)" }),
  ],
  ["a connection to Temporal", failed({ code: 2, details: "transport error" })],
  ["the cause of the library's error", failed({}, "Failed to signal", failed({ code: 14, details: "zq" }))],
  ["a connection of the worker's library", named("TransportError", "zq")],
  ["a runtime that shuts down", named("ShutdownError", "zq")],
  ["a disk that is full", failed({ code: "ENOSPC", path: "/var/x" })],
  ["too many open files", failed({ code: "EMFILE", path: "/var/x" })],
  [
    "a sandbox without processes left",
    new Error("the sandbox's supervisor refused: BlockingIOError: [Errno 11] Resource temporarily"),
  ],
  ["an error that says so itself", Object.assign(new Error("zq"), { isPassing: true })],
];

const FINAL: readonly [string, unknown][] = [
  ["a mistake of ours", new TypeError("Cannot read properties of undefined (reading 'zq')")],
  ["a library's mistake", new RangeError("Invalid array length")],
  ["an assertion", failed({ code: "ERR_ASSERTION", name: "AssertionError" }, "expected zq")],
  ["JSON that is none", new SyntaxError("Unexpected token 'z'")],
  ["a file that is missing", failed({ code: "ENOENT", path: "/x" }, "ENOENT: no such file, open '/x'")],
  ["a file that may not be read", failed({ code: "EACCES", path: "/x" })],
  [
    "a certificate that is not trusted",
    new TypeError("fetch failed", { cause: failed({ code: "CERT_HAS_EXPIRED" }) }),
  ],
  ["another protocol", failed({ code: "EPROTO" }, "wrong version number")],
  ["the engine's refusal", failed({ statusCode: 403 })],
  ["Temporal's refusal", failed({ code: 7, details: "Request unauthorized." })],
  ["Temporal's unknown error", failed({ code: 2, details: "zq" })],
  ["a number that is no status of gRPC", failed({ code: 14 })],
  ["a sandbox's program that refuses", new Error("the sandbox's supervisor refused: KeyError: 'zq'")],
  ["an error that says so itself", Object.assign(new Error("terminated, says zq"), { isPassing: false })],
  ["what is no error", "zq"],
];

it.each(PASSING)("%s is tried again", async (_what, error) => {
  expect(await leaving(error)).toMatchObject({ nonRetryable: false });
});

it.each(FINAL)("%s is told at once, in its own words", async (_what, error) => {
  const failure = await leaving(error);
  expect(failure).toMatchObject({ type: "Unexpected", nonRetryable: true });
  const words = error instanceof Error && error.message !== "fetch failed" ? error.message : "zq";
  expect(failure.message).toContain(words.replace(/\.$/, ""));
  expect(failure.message).toContain("What was done before is kept");
});

describe("an error of any kind", () => {
  const kinds = [Error, TypeError, RangeError, ReferenceError, EvalError, URIError];
  const word = fc.stringMatching(/^zq[a-z]{3,12}$/);
  const one = fc.record({ kind: fc.constantFrom(...kinds), word, depth: fc.nat(5) });

  it("is final and named, however deep it lies, unless one that it comes from passes", async () => {
    await fc.assert(
      fc.asyncProperty(one, fc.boolean(), async ({ kind, word: said, depth }, breaks) => {
        let error: Error = new kind(
          `${said} ${SECRET}`,
          breaks ? { cause: failed({ code: "ECONNRESET" }) } : {},
        );
        for (let level = 0; level < depth; level += 1) error = new Error("outer", { cause: error });
        const failure = await leaving(error);
        expect(failure.nonRetryable).toBe(!breaks);
        expect(failure.message).not.toContain(SECRET);
        if (!breaks) expect(failure.message).toContain(said);
      }),
      { numRuns: 100 },
    );
  });
});

it("a cancellation and a failure with a type pass as they are", async () => {
  const typed = ApplicationFailure.create({ type: "SandboxUnavailable", message: "zq", nonRetryable: false });
  expect(await leaving(typed)).toBe(typed);
  await expect(leaving(new CancelledFailure("zq"))).rejects.toThrow("no failure: CancelledFailure: zq");
});
