import { stripTypeScriptTypes } from "node:module";
import { describe, expect, test } from "vitest";
import { importsOf, sources, trespasses } from "./sources.ts";

describe("each library is known to one folder", () => {
  test.each([
    ["dockerode", /^dockerode$/, /^activities\/sandbox\/docker\/|^client\/setup\/sandbox-image|^test\//],
    ["the AI SDK", /^(ai|@ai-sdk\/.*)$/, /^activities\/model\/|^test\//],
    ["the MCP library", /^@modelcontextprotocol\/client$/, /^activities\/mcp\/|^test\//],
    ["xterm's parser", /^@xterm\/headless$/, /^activities\/tools\/terminal\//],
    ["drizzle", /^drizzle-orm/, /^activities\/store\/|^drizzle\.config|^test\//],
    // Local set-up speaks to a server that has none of our tables yet.
    ["pg", /^pg$/, /^activities\/store\/|^temporal\/(postgres-)?probe|^client\/setup\/|^test\//],
    ["Temporal's worker", /^@temporalio\/worker$/, /^worker\/|^temporal\/connection|^test\//],
    ["OpenTelemetry", /^@opentelemetry\//, /^worker\/telemetry\/|^test\//],
    ["commander", /^commander$/, /^client\//],
  ])("%s", (_, packages, allowed) => {
    expect(trespasses(packages, allowed)).toEqual([]);
  });

  test("a search that looks for nothing finds something", () => {
    expect(trespasses(/^drizzle-orm/, /^$/)).not.toEqual([]);
  });
});

describe("the AI SDK calls the model", () => {
  const models = sources(/^(activities|temporal|worker|client|workflows|examples)\/.*\.ts$/);
  const found = (pattern: RegExp) =>
    models.flatMap(({ path, text }) => [...text.matchAll(pattern)].map(([match]) => `${path}: ${match}`));

  test("by `streamText`, in one place", () => {
    const calls =
      /\b(?:experimental_)?(?:streamText\w*|generateText|streamObject|generateObject|streamLanguageModelCall)\(/g;
    expect(found(calls)).toEqual(["activities/model/ai-sdk.ts: experimental_streamTextLowMemory("]);
  });

  test("and nothing asks a model past it", () => {
    expect(found(/\bdo(?:Stream|Generate)\b/g)).toEqual([]);
  });
});

test("clients of Temporal are made in one place, so that all encrypt and read alike", () => {
  const makers = sources(/^(temporal|worker|client|examples)\/.*\.ts$/).filter(
    ({ text }) => /from "@temporalio\/client"/.test(text) && /\bnew Client\(/.test(text),
  );
  expect(makers.map(({ path }) => path)).toEqual(["temporal/temporal-client.ts"]);
});

describe("the layers", () => {
  const imports = sources().flatMap((source) =>
    importsOf(source).map((imported) => ({ from: source.path, ...imported })),
  );
  const crossings = (from: RegExp, to: RegExp) =>
    imports
      .filter((edge) => from.test(edge.from) && to.test(edge.to) && !edge.typeOnly)
      .map((edge) => `${edge.from} → ${edge.to}`);

  test("the workflow imports its own files, the contract, and what texts need", () => {
    const own = /^(workflows\/|activities\/(contract|text)\/|@temporalio\/(workflow|common)$)/;
    const others = imports.filter(({ from, to }) => from.startsWith("workflows/") && !own.test(to));
    expect(others).toEqual([]);
  });

  test("the contract imports nothing of the project but texts, and these nothing at all", () => {
    const below = (folder: string, allowed: RegExp) =>
      imports.filter(
        ({ from, to }) =>
          from.startsWith(`activities/${folder}/`) && to !== "@temporalio/common" && !allowed.test(to),
      );
    expect(below("contract", /^activities\/(contract|text)\//)).toEqual([]);
    expect(below("text", /^activities\/text\//)).toEqual([]);
  });

  test("the product does not know its tests", () => {
    expect(crossings(/^(workflows|activities|temporal|worker|client|examples)\//, /^test\//)).toEqual([]);
  });

  // That they use nothing of Node is held by the compiler: workflows/tsconfig.json has no types of it.
  test("pure folders touch neither Node nor a library but Temporal's failure types", () => {
    const pure = "activities/(contract|text|transcript|redaction|compaction)/";
    const allowed = `^(?!${pure}|activities/config/|@temporalio/common$)`;
    expect(crossings(new RegExp(`^${pure}`), new RegExp(allowed))).toEqual([]);
  });
});

test("the contract erases to nothing", () => {
  const contract = sources(/^activities\/contract\/activities\.ts$/)[0]?.text ?? "";
  const code = stripTypeScriptTypes(contract)
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/\/\/.*$/gm, "")
    .replace(/export\s*\{\s*\};?/g, "")
    .replaceAll(";", "")
    .trim();
  expect(code).toBe("");
});

/** They read the words of errors that no query threw: of parsers, files, settings and our own classes. */
const OWN_WORDS = [
  "client/batch/batch-file.ts",
  "client/commands/mcp.ts",
  "client/config/config.ts",
  "client/config/devcontainer.ts",
  "client/connect/missing-service.ts",
  "client/report/report-page.ts",
  "client/schedules/make-schedule.ts",
  "client/sessions/with-session.ts",
  "client/setup/findings.ts",
  "client/setup/model-check.ts",
  "client/setup/pull-request-check.ts",
  "client/setup/services.ts",
  "client/setup/doctor.ts",
  "client/workspace/apply-on-branch.ts",
  "client/workspace/whole-repositories.ts",
  "client/workspace/workspace-folder.ts",
];

test("the client tells an error's reason by the function that tells no SQL, or an error without", () => {
  const readers = sources()
    .filter(
      ({ path, text }) =>
        path.startsWith("client/") &&
        /\b(error|err|cause|inner|reason|thrown|failed|failure)( as Error\))?\.message\b/.test(text),
    )
    .map(({ path }) => path)
    .filter((path) => !OWN_WORDS.includes(path));
  expect(readers).toEqual([]);
});

/** One module for each setting of the surroundings that client, worker, probe and set-up share. */
const SURROUNDINGS = [
  "activities/sandbox/docker/engine-address.ts",
  "activities/process/authorities.ts",
  "activities/process/proxies.ts",
  "activities/store/postgres-address.ts",
];

test("only the configurations, the set-up and the modules of the surroundings read `process.env`", () => {
  const readers = sources()
    .filter(({ path }) => /^(workflows|activities|temporal|worker|client|examples)\//.test(path))
    .filter(
      ({ path }) =>
        !/^(worker\/config\.ts|client\/config\/config\.ts|examples\/rehearsal\/main\.ts|client\/setup\/.*)$/.test(
          path,
        ),
    )
    .filter(({ text }) => /process\.env\b/.test(text))
    .map(({ path }) => path)
    .filter((path) => !SURROUNDINGS.includes(path));
  expect(readers).toEqual([]);
});

// A worker loads them once for all its runs: what one wrote there, every other would read (workflows/this-run.ts).
test("modules of the workflow's bundle hold no state", () => {
  const state = /^(export )?(let |const \w+(: [^=]+)? = new (Map|Set|WeakMap|WeakSet)\b[^(]*\(\);)/gm;
  const bundled = sources(/^(workflows|activities\/(contract|text))\/.*\.ts$/);
  expect(bundled.length).toBeGreaterThan(50);
  const found = bundled.flatMap(({ path, text }) =>
    (text.match(state) ?? []).map((line) => `${path}: ${line}`),
  );
  expect(found).toEqual([]);
  expect("let take: Take | undefined;".match(state)).not.toBeNull();
});
