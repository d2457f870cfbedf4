/** One name for one thing, and what a test's name is: one behaviour, without labels. No comment cites what a reader cannot open. */
import { parseSync, Visitor, type ParamPattern } from "oxc-parser";
import { describe, expect, it } from "vitest";
import { sources } from "./sources.ts";

const PRODUCT = /^(workflows|activities|temporal|worker|client|examples)\//;

/** Names that several files have to export, and why. */
const DEMANDED: Readonly<Record<string, string>> = {
  interceptors: "Temporal's worker loads modules of interceptors and calls the export of this name",
  payloadConverter: "Temporal loads a module by its path, once for the worker and once for the workflows",
};

/**
 * Exported functions `…Of`. Each finds what belongs to its argument, or is recorded of it; what makes or converts something has a
 * verb (`toBranchName`, `parseForge`, `describeFiles`).
 */
const LOOK_UPS = `
  accessOf birthOf blobsOf buildOf callsOf databaseErrorOf endedRunsOf fallbackOf filesAsOf filesOf forkOf grantsOf idOf isStartOf
  lfsObjectsOf limitOf messageOf missingServiceOf modelOf optionsOf originOf orphansOf overlapOf partsOf pollersOf promptOf pruneModeOf
  pushesOf rateOf reasonOf removeKeptOf resultOf rulesOf runIdsOf runcOf secretsOf senderOf serversOf settingOf setupOf standingOf
  statusOf summaryOf taskOf tokensOf toolLimitsOf traceOf triggerOf troubleOf workersOf
`
  .trim()
  .split(/\s+/);

/** Say nothing of what they hold: `text`, `message`, `limits`, `address`, … do. */
const OPAQUE = ["said", "words", "look", "place", "taken", "given", "order"];

const EXPORT =
  /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:function\*?|const|let|class|interface|type)\s+([\w$]+|\{[^}]*\}(?=\s*=))/gm;

/** In these folders no parameter and no constant has such a name either, nor one of these. */
const PLAIN_FOLDERS = /^(activities|client|worker|workflows|temporal)\//;
const OPAQUE_VALUES = [...OPAQUE, "places", "kept", "held", "owed", "wanted", "found", "asked", "shown"];

/** Parameters and variables that say nothing of their value. Fields, and what is taken out of one by its name, are the data's. */
function opaqueValues(text: string): string[] {
  const names: string[] = [];
  const params = (node: { readonly params: readonly ParamPattern[] }): void => {
    for (const param of node.params) {
      const plain = param.type === "AssignmentPattern" ? param.left : param;
      const inner = plain.type === "RestElement" ? plain.argument : plain;
      if (inner.type === "Identifier") names.push(inner.name);
    }
  };
  new Visitor({
    VariableDeclarator: ({ id }) => {
      if (id.type === "Identifier") names.push(id.name);
    },
    FunctionDeclaration: params,
    FunctionExpression: params,
    ArrowFunctionExpression: params,
    TSFunctionType: params,
    TSMethodSignature: params,
  }).visit(parseSync("a.ts", text).program);
  return names.filter((name) => OPAQUE_VALUES.includes(name));
}

function exportsOf(text: string): string[] {
  const names = [...text.matchAll(EXPORT)].flatMap(([, name = ""]) =>
    name.startsWith("{") ? [...name.matchAll(/([\w$]+)\s*(?=[,}])/g)].map(([, inner = ""]) => inner) : [name],
  );
  // An overload repeats its name.
  return [...new Set(names)];
}

/** `name: file, file` for each name that several files define. */
function definedTwice(files: readonly { readonly path: string; readonly text: string }[]): string[] {
  const owners = new Map<string, string[]>();
  for (const { path, text } of files)
    for (const name of exportsOf(text)) owners.set(name, [...(owners.get(name) ?? []), path]);
  return [...owners]
    .filter(([, paths]) => paths.length > 1)
    .map(([name, paths]) => `${name}: ${paths.join(", ")}`);
}

const COMMENT = /\/\*\*?\s[^]*?\*\/|(?:^|\s)(?:\/\/|#) .*|"""[^]*?"""/gm;

/** What says nothing to a reader, and what to write instead. */
const IDLE: readonly (readonly [words: RegExp, instead: string])[] = [
  [/(?<=[.:;]\s|\*\s)Pure\.(?!\w)/, "the folder's rule says what is pure; say what else a reader must know"],
  [/\bSource: ours\b/i, "Chosen: why, or Chosen by judgement: what it bounds"],
  [/\bsurvey of\b/i, "the fact itself"],
  [/\bissues? #?\d+/i, "the fact itself, or a page of docs/"],
  [
    /(?<!\brequirements? [^.]*)(?<![[\w])[ADFRU]\d{1,2}\b(?!\])/,
    "`[R44]`, which docs/requirements.md explains, or the fact itself",
  ],
];

function idleWords(text: string): string[] {
  // A sentence may go on in the next line.
  const comments = [...text.matchAll(COMMENT)].map(([comment]) => comment.replaceAll(/\s*\n\s*\*?\s*/g, " "));
  return comments.flatMap((comment) =>
    IDLE.flatMap(([words, instead]) => {
      const [found] = words.exec(comment) ?? [];
      return found === undefined ? [] : [`${found} → ${instead}`];
    }),
  );
}

describe("an exported name", () => {
  const twice = definedTwice(sources(/\.ts$/).filter(({ path }) => PRODUCT.test(path)));
  const demanded = (line: string) => (line.split(":")[0] ?? "") in DEMANDED;

  it("is defined by one file of the product", () => {
    expect(twice.filter((line) => !demanded(line))).toEqual([]);
  });

  it("is an exception only while several files define it", () => {
    expect(twice.filter(demanded)).toHaveLength(Object.keys(DEMANDED).length);
  });

  const names = sources(/\.ts$/)
    .filter(({ path }) => PRODUCT.test(path))
    .flatMap(({ text }) => exportsOf(text));

  it("ends in `Of` only for a look-up", () => {
    expect(names.filter((name) => /^[a-z]\w*Of$/.test(name) && !LOOK_UPS.includes(name))).toEqual([]);
  });

  it("is no bare noun that says nothing", () => {
    expect(names.filter((name) => OPAQUE.includes(name))).toEqual([]);
  });

  it.each([
    ["export function place() {}", "export interface place {}"],
    ["export async function place<T>() {}", "export const place = 1;"],
    ["export abstract class place {}", "export type place = string;"],
    ["export async function* place() {}", "export let place: string;"],
    ["export const { other, place } = both;", "export const { here: place } = both;"],
  ])("is found twice in %j and %j", (one, other) => {
    const files = [
      { path: "a.ts", text: one },
      { path: "b.ts", text: `// The other.\n${other}\n` },
    ];
    expect(definedTwice(files)).toEqual(["place: a.ts, b.ts"]);
  });

  it("may be a local name elsewhere, an overload or a re-export", () => {
    const texts = [
      "export function place(a: 1): 1;\nexport function place(a: 2): 2;",
      "const place = 1;\n  export const place = 1;",
      'export { place } from "./a.ts";\nexport type { place } from "./a.ts";',
    ];
    expect(definedTwice(texts.map((text, at) => ({ path: `${at}.ts`, text })))).toEqual([]);
  });
});

describe("a local value", () => {
  it("has a name that says what it is", () => {
    const files = sources(/\.ts$/).filter(({ path }) => PLAIN_FOLDERS.test(path));
    expect(files.length).toBeGreaterThan(100);
    expect(files.flatMap(({ path, text }) => opaqueValues(text).map((name) => `${path}: ${name}`))).toEqual(
      [],
    );
  });

  it.each([
    "const found = 1;",
    "for (const place of all) use(place);",
    "function f(said: string) {}",
    "all.map((given) => given);",
    "interface A { f(order: number): void }",
  ])("is refused as in %j", (text) => {
    expect(opaqueValues(text)).toHaveLength(1);
  });

  it.each(["const { kept } = cut;", "interface A { place: string }", "use({ order: 1, place });"])(
    "may be as in %j",
    (text) => {
      expect(opaqueValues(text)).toEqual([]);
    },
  );
});

describe("a comment of the product", () => {
  it("cites only what a reader can open", () => {
    const found = sources(/\.(ts|py)$/)
      .filter(({ path }) => PRODUCT.test(path))
      .flatMap(({ path, text }) => idleWords(text).map((words) => `${path}: ${words}`));
    expect(found).toEqual([]);
  });

  it("names only decisions that have a page", () => {
    const pages = sources(/^docs\/decisions\/\d{4}-/).map(({ path }) => /\d{4}/.exec(path)?.[0]);
    const named = sources(/\.(ts|py)$/)
      .filter(({ path }) => PRODUCT.test(path))
      .flatMap(({ path, text }) =>
        [...text.matchAll(/\bdecisions? #?(\d+)/gi)].map(([, number]) => [path, number] as const),
      );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter(([, number]) => !pages.includes(number))).toEqual([]);
  });

  it.each([
    "/** The loop's decisions. Pure. */",
    "/**\n * The loop's decisions.\n * Pure.\n */",
    "const a = 1; // Source: ours.",
    "/** So many. Source: ours, some two screens. */",
    "# Source: ours\n",
    "/** Source: survey\n * of reliability. */",
    "  // See issue 14.",
    "/** Source: issues #3 and #4. */",
    "/** Source: requirement 3. R30–R31. */",
    "/** Source: D2, 2. */",
    '"""Waits (A12)."""',
  ])("is found with idle words: %j", (text) => {
    expect(idleWords(text)).toHaveLength(1);
  });

  it.each([
    "/** Pure functions. Source: requirements D0, D2 and D4; [R44], [case 12] and decision 0026. */",
    "/** Chosen: a start takes seconds. See temporalio/temporal#10639, whose issue is open. */",
    'const text = "Pure. Source: ours"; // V8 and the C1 controls',
  ])("may be %j", (text) => {
    expect(idleWords(text)).toEqual([]);
  });
});

/** A title after `it(`, `describe.skipIf(…)(`, `test.each(…)(`; in a scenario, the value of `name`. */
const TITLE =
  /(?:\b(?:test|it|describe)(?:\.\w+)*|\))\(\s*("(?:[^"\\\n]|\\.)*"|`(?:\$\{(?:[^{}`]|`[^`]*`)*\}|[^`])*`)|^- name: (.+)$/gm;
const MAX_TITLE_CHARS = 90;

/** What is wrong with the titles in a text, in its order. */
function faultyTitles(text: string): string[] {
  return [...text.matchAll(TITLE)].flatMap(([, quoted, plain]) => {
    const title = plain ?? (quoted ?? "").slice(1, -1);
    const chars = Array.from(
      title.replaceAll(/\$\{(?:[^{}`]|`[^`]*`)*\}/g, "…").replaceAll(/\\(.)/g, "$1"),
    ).length;
    return [
      ...(chars > MAX_TITLE_CHARS ? [`${chars} characters: ${title}`] : []),
      ...(/\[(?:[a-z]+ [\d.]+|[A-Z]\d{1,2})\]/.test(title)
        ? [`a label, which belongs in \`tags\`: ${title}`]
        : []),
    ];
  });
}

describe("a test's name", () => {
  it(`has at most ${MAX_TITLE_CHARS} characters and no label`, () => {
    const found = sources(/^test\/.*\.test\.ts$|^test\/scenarios\/.*\.yaml$/)
      .filter(({ path }) => path !== "test/architecture/names.test.ts")
      .flatMap(({ path, text }) => faultyTitles(text).map((fault) => `${path}: ${fault}`));
    expect(found).toEqual([]);
  });

  const long = "waits ".repeat(15);
  it.each([
    `test("${long}!", () => {});`,
    `  it.only(\n    \`${long}!\`,\n    { timeout: 1 },\n    () => {});`,
    `describe.skipIf(reason)("${long}!", () => {});`,
    `it.each([["a", 1]])("${long}!", () => {});`,
    `- name: ${long}!`,
    'it("stops [R44]", () => {});',
    'it.each(["a"] as const)("stops %s [case 12.3]", () => {});',
    'test("stops [load 13]", () => {});',
  ])("is refused in %j", (text) => {
    expect(faultyTitles(text)).toHaveLength(1);
  });

  it.each([
    `test("${long}", { tags: ["R44", "case-12"] }, () => {});`,
    'describe(`a full disk${reason === undefined ? "" : ` (skipped, as nobody can make one here: ${reason})`} of Postgres\', of its own`, () => {});',
    'it("joins two as [1]: and [2]:", () => {});',
  ])("may be as in %j", (text) => {
    expect(faultyTitles(text)).toEqual([]);
  });
});
