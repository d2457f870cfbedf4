/** At each boundary: what passes by itself is in its table, and everything else is told at once, in the other side's own words. */
import { ApplicationFailure } from "@temporalio/common";
import { ProtocolError, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import fc from "fast-check";
import pg from "pg";
import { describe, expect, it } from "vitest";
import { innermostReason, theirWords } from "../../activities/contract/errors.ts";
import { ForgeRefusal } from "../../activities/forge/calls.ts";
import { remoteTrouble } from "../../activities/git/remote.ts";
import { toRefusal } from "../../activities/git/trouble.ts";
import { isPassing as mcpPasses, serverReason as mcpReason } from "../../activities/mcp/failures.ts";
import { noAnswerReason } from "../../activities/process/remote-fetch.ts";
import { toModelError } from "../../activities/model/to-model-error.ts";
import { unavailable } from "../../activities/sandbox/docker/docker-errors.ts";
import { databaseErrorOf } from "../../activities/store/database-error.ts";
import { missingServiceOf } from "../../client/connect/missing-service.ts";
import { askedAs } from "../support/run-config.ts";

const failed = (fields: object, message = "nobody knows this") => Object.assign(new Error(message), fields);
const fetchFailed = (code: string) => new TypeError("fetch failed", { cause: failed({ code }) });
const answered = (facts: { final: boolean } | undefined) => facts?.final === false;

interface Boundary {
  readonly name: string;
  /** Whether work waits for it. */
  readonly passes: (sign: string) => boolean;
  /** What the other side says when something passes. */
  readonly passing: readonly string[];
  /** Anything of the same form. */
  readonly any: fc.Arbitrary<string>;
}

const status = fc.integer({ min: 300, max: 599 }).map(String);
const code = fc.stringMatching(/^E[A-Z]{4,12}$/);
const FOR_A_WHILE = [
  "408",
  "425",
  "429",
  "500",
  "502",
  "503",
  "504",
  "520",
  "521",
  "522",
  "523",
  "524",
  "529",
  "530",
];
const NETWORK = [
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "EHOSTDOWN",
];
NETWORK.push("ENETUNREACH", "ENETDOWN", "ENETRESET", "ENOTCONN", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_SOCKET");
NETWORK.push(
  "ENONET",
  "ESHUTDOWN",
  "EADDRNOTAVAIL",
  "EAGAIN",
  "EINTR",
  "EMFILE",
  "ENFILE",
  "ENOBUFS",
  "ENOMEM",
);

const context = { ...askedAs("acme/m"), api: "chat", mask: (text: string) => text, now: 0 } as const;
const modelClass = (error: unknown) => toModelError(error, context).class;
const isAgain = (kind: string) => ["unavailable", "rate-limit"].includes(kind);
const git = (err: string) => toRefusal(remoteTrouble("https://git.test/a/b", { err })).isPassing;
const engine = (fields: object) => {
  const failure = unavailable(failed(fields));
  return failure instanceof ApplicationFailure && failure.nonRetryable !== true;
};

const mcpAnswer = (status: number, text = "zq") =>
  new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, text, { status } as never);

const BOUNDARIES: readonly Boundary[] = [
  {
    name: "git over HTTP",
    passes: (sign) =>
      git(`fatal: unable to access 'https://git.test/a/b/': The requested URL returned error: ${sign}`),
    passing: FOR_A_WHILE,
    any: fc.integer({ min: 400, max: 599 }).map(String),
  },
  {
    name: "git's own words",
    passes: git,
    passing: [
      "fatal: Could not resolve host: git.test",
      "ssh: connect to host git.test port 22: Connection timed out",
    ],
    any: fc.stringMatching(/^fatal: [a-z]{3,9} zq[a-z]{3,9}$/),
  },
  {
    name: "a forge",
    passes: (sign) => new ForgeRefusal(Number(sign), "x").isPassing,
    passing: FOR_A_WHILE,
    any: status,
  },
  {
    name: "a forge's connection",
    passes: (sign) => noAnswerReason("forge.test", fetchFailed(sign)).includes("does not answer"),
    passing: NETWORK,
    any: code,
  },
  {
    name: "the engine",
    passes: (sign) => engine({ statusCode: Number(sign) }),
    passing: [...FOR_A_WHILE, "404", "409"],
    any: status,
  },
  {
    name: "the engine's socket",
    passes: (sign) => engine({ code: sign }),
    passing: [...NETWORK, "ENOENT"],
    any: code,
  },
  {
    name: "Postgres",
    passes: (sign) =>
      answered(databaseErrorOf(Object.assign(new pg.DatabaseError("x", 1, "error"), { code: sign }))),
    passing: [
      "08006",
      "08P01",
      "28P01",
      "3D000",
      "40001",
      "40P01",
      "53100",
      "53300",
      "57014",
      "57P01",
      "58030",
      "XX000",
    ].concat(["23505", "23P01", "25006", "25P03", "55P03", "55006"]),
    any: fc.stringMatching(/^(0A|0B|21|22|23|25|2B|2F|34|38|39|3B|42|44|54|55|F0|HV|P0|ZZ)[0-9A-Z]{3}$/),
  },
  {
    name: "Postgres' connection",
    passes: (sign) =>
      answered(databaseErrorOf(new Error("Failed query: select 1", { cause: failed({ code: sign }) }))),
    passing: NETWORK,
    any: code,
  },
  {
    name: "Temporal",
    passes: (sign) => /does not answer/.test(missingServiceOf(failed({ code: Number(sign) }))?.message ?? ""),
    passing: ["1", "4", "8", "10", "14"],
    any: fc.integer({ min: 0, max: 40 }).map(String),
  },
  {
    name: "a model's server",
    passes: (sign) =>
      isAgain(modelClass(failed({ statusCode: Number(sign), responseBody: '{"error":{"message":"zq"}}' }))),
    passing: [...FOR_A_WHILE, "409", "498"],
    any: status,
  },
  {
    name: "a model's connection",
    passes: (sign) => isAgain(modelClass(fetchFailed(sign))),
    passing: NETWORK,
    any: code,
  },
  {
    name: "a model's answer",
    passes: (sign) => isAgain(modelClass({ error: { type: sign, message: "zq" } })),
    passing: [
      "overloaded_error",
      "server_error",
      "api_error",
      "UNAVAILABLE",
      "DEADLINE_EXCEEDED",
      "timeout_error",
    ],
    any: fc.stringMatching(/^zq_[a-z]{4,10}$/),
  },
  {
    name: "an MCP server",
    passes: (sign) => mcpPasses(mcpAnswer(Number(sign))),
    passing: FOR_A_WHILE,
    any: status,
  },
  {
    name: "an MCP server's answer",
    passes: (sign) => mcpPasses(new ProtocolError(Number(sign), "zq")),
    passing: ["-32603"],
    any: fc.integer({ min: -32_800, max: -31_900 }).map(String),
  },
  {
    name: "an MCP server's connection",
    passes: (sign) =>
      mcpPasses(fetchFailed(sign)) &&
      mcpPasses(new SdkError(SdkErrorCode.EraNegotiationFailed, "zq", { cause: fetchFailed(sign) })),
    passing: NETWORK,
    any: code,
  },
];

describe.each(BOUNDARIES)("$name", ({ passes, passing, any }) => {
  it("waits for what passes", () => {
    expect(passing.filter((sign) => !passes(sign))).toEqual([]);
  });

  it("tells everything else at once", () => {
    fc.assert(
      fc.property(
        any.filter((sign) => !passing.includes(sign)),
        (sign) => {
          expect(passes(sign)).toBe(false);
        },
      ),
    );
  });
});

it.each([
  "CERT_HAS_EXPIRED",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
  "ERR_TLS_CERT_ALTNAME_INVALID",
])("a certificate that is not trusted (%s) is no server that does not answer", (sign) => {
  const error = fetchFailed(sign);
  const told = [
    noAnswerReason("forge.test", error),
    unavailable(failed({ code: sign })).message,
    toModelError(error, context).message,
  ];
  expect(mcpPasses(error)).toBe(false);
  for (const text of told) expect(text).not.toMatch(/does not answer|did not answer|could not be reached/);
  expect(isAgain(modelClass(error))).toBe(false);
});

/** Texts of several lines, of which one says why, at any place. */
const telling = fc.record({
  why: fc.constantFrom(
    "permission denied by policy P-17",
    "the quota of 5 is exceeded",
    "cannot open /var/x: no space",
  ),
  before: fc.array(
    fc.stringMatching(/^[a-z ]{5,90}$/).filter((line) => line.trim() !== ""),
    { maxLength: 12 },
  ),
  after: fc.array(
    fc.stringMatching(/^[a-z ]{5,90}$/).filter((line) => line.trim() !== ""),
    { maxLength: 12 },
  ),
});

it("a reason of many lines is told on one, and the line that says why whole", () => {
  fc.assert(
    fc.property(telling, fc.constantFrom("\n", "\r\n"), ({ why, before, after }, end) => {
      const text = [...before, why, ...after].join(end);
      const mcp = mcpAnswer(403, text);
      const said = [
        theirWords(text),
        innermostReason(new Error("fetch failed", { cause: new Error(text) })),
        noAnswerReason("forge.test", new Error(text)),
        unavailable(failed({ statusCode: 403 }, text)).message,
        toModelError(
          failed({ statusCode: 400, responseBody: JSON.stringify({ error: { message: text } }) }),
          context,
        ).message,
        missingServiceOf(failed({ code: 7 }, text))?.message ?? "",
        mcpReason(mcp),
      ];
      for (const reason of said) {
        expect(reason).toContain(why);
        expect(reason).not.toMatch(/[\r\n]/);
      }
    }),
  );
});

it("a reason has no characters that control a terminal, and no stack", () => {
  const text = "\u001B[31mboom\u0007 failed\n    at run (/srv/x.ts:3:4)\n    at async /srv/y.ts:9";
  expect(theirWords(text)).toBe("[31mboom failed");
});
