/** The pages that say where things are: docs/how-it-maps.md, and the path of a task in ARCHITECTURE.md. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { getTableName, is } from "drizzle-orm";
import { getViewConfig, PgTable, PgView } from "drizzle-orm/pg-core";
import { expect, test } from "vitest";
import { parse } from "yaml";
import * as schema from "../../activities/store/schema/index.ts";
import { commandList } from "../../client/command-list.ts";
import { project, textOf } from "./sources.ts";

const page = textOf("docs/how-it-maps.md");
const architecture = textOf("ARCHITECTURE.md");
const card = parse(textOf("test/fixtures/design-card.yaml")) as Record<
  "packages" | "topLevel" | "shape" | "usedBy",
  readonly string[]
>;

const isExported = (name: string, text: string) =>
  new RegExp(`^export (async )?(function|const|interface|class|type) ${name}\\b`, "m").test(text);

/** Tables and views of the schema. */
const tables = Object.values(schema).flatMap((value: unknown) => {
  if (is(value, PgTable)) return [getTableName(value)];
  return is(value, PgView) ? [getViewConfig(value).name] : [];
});

test("the map has each phrase of the design card", () => {
  for (const phrase of [...card.shape, ...card.usedBy]) expect(page).toContain(`| "${phrase}" |`);
  expect(page).toContain(`"${card.topLevel.join(", ")}"`);
  for (const path of card.topLevel) expect(existsSync(join(project, path)), path).toBe(true);
  const { dependencies } = JSON.parse(textOf("package.json")) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  expect(card.packages.filter((name) => !(name in dependencies))).toEqual([]);
  expect(page.split("\n").length).toBeLessThan(60);
});

test("the map's names are exported by the files that they stand before", () => {
  const links = [...page.matchAll(/((?:`\w+`, )*`\w+`) \[[^\]]+\]\(\.\.\/([^)]+)\)/g)];
  const wrong = links.flatMap(([, names = "", path = ""]) =>
    [...names.matchAll(/`(\w+)`/g)]
      .map(([, name = ""]) => name)
      .filter((name) => !isExported(name, textOf(path)))
      .map((name) => `${name} in ${path}`),
  );
  expect(links.length).toBeGreaterThan(30);
  expect(wrong).toEqual([]);
});

test("the map's tables and commands are there", () => {
  const listsOf = (word: RegExp) =>
    [...page.matchAll(word)].flatMap(([found]) => found.match(/`[^`]+`/g) ?? []);
  const named = listsOf(/tables? (`\w+`(, )?)+/g).map((name) => name.slice(1, -1));
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((name) => !tables.includes(name))).toEqual([]);
  const commands = [...page.matchAll(/`longhaul (\w+)`/g)].map(([, name = ""]) => name);
  expect(commands.filter((name) => !commandList.some((command) => command.name === name))).toEqual([]);
});

test("ARCHITECTURE's tables are those of the schema", () => {
  const [section = ""] = architecture.match(/(?<=\n## Tables\n)[^]*?(?=\n## )/) ?? [];
  const rows = [...section.matchAll(/^\| (`[^|]+) \|/gm)].map(([, cell = ""]) => cell);
  const named = rows.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name));
  expect(tables.filter((name) => !named.includes(name))).toEqual([]);
  expect(named.filter((name) => !tables.includes(name ?? ""))).toEqual([]);
});

test("ARCHITECTURE's path of a task names activities that there are", () => {
  const [path = ""] = architecture.match(/(?<=\n## The path of a task\n)[^]*?(?=\n## )/) ?? [];
  const activities = textOf("activities/contract/activities.ts");
  const named = [...path.matchAll(/`([a-z]+(?:[A-Z][a-z]+)*)`/g)].map(([, name = ""]) => name);
  const participants = [...path.matchAll(/participant \w as ([a-z]+[A-Z]\w+)/g)].map(([, name = ""]) => name);
  const known = (name: string) => new RegExp(`^  ${name}\\(`, "m").test(activities);
  const used = [...new Set([...named, ...participants])].filter((name) => name !== "schedules");
  expect(used.length).toBeGreaterThan(8);
  expect(used.filter((name) => !known(name))).toEqual([]);
});

test("ARCHITECTURE's path of a task names files that there are", () => {
  const [path = ""] = architecture.match(/(?<=\n## The path of a task\n)[^]*?(?=\n## )/) ?? [];
  const named = [...path.matchAll(/`([\w./-]+\.ts)`/g)].map(([, file = ""]) => file);
  // Without a folder: one of the last folder that was named before it.
  let folder = "";
  const missing = named.filter((file) => {
    const at = file.includes("/") ? file : join(folder, file);
    folder = at.split("/").slice(0, -1).join("/");
    return !existsSync(join(project, at));
  });
  expect(named.length).toBeGreaterThan(20);
  expect(missing).toEqual([]);
});

test("ARCHITECTURE's order of the loop is that of the code", () => {
  const inOrder = (text: string, steps: readonly string[]) => {
    const places = steps.map((step) => text.indexOf(step));
    expect(
      places.every((place) => place >= 0),
      `${steps.join(", ")} in ${places.join(", ")}`,
    ).toBe(true);
    expect(places).toEqual(places.toSorted((left, right) => left - right));
  };
  const body = (file: string, name: string) =>
    new RegExp(`function ${name}\\b[^]*?\\n}\\n`).exec(textOf(file))?.[0] ?? "";
  inOrder(architecture, [
    "all messages stored, then prune or compaction if due",
    "W->>M: step\n",
    "what waits in the queue as one message, then the view",
    "is this step's answer stored?",
    "request, streamed",
    "answer, ledger rows, usage, events: one transaction",
    "par each call in parallel",
    "claim: running",
    "result at its reserved sequence",
    "`prune: always` and enough to hide? prune. Next step",
  ]);
  inOrder(body("workflows/coding-agent.ts", "loop"), [
    "for (;;)",
    "undoCompactions(",
    "makeRoom(",
    "askNextStep(",
    "afterStep(",
    "await finishStep(run, calls,",
  ]);
  inOrder(body("workflows/coding-agent.ts", "finishStep"), ["runTools(", "pushSaves(", "pruneOld("]);
  inOrder(body("workflows/make-room.ts", "makeRoom"), [
    "compactionDue(",
    "prune(run)",
    "fitsNow(",
    "compact(run",
  ]);
  inOrder(body("activities/step/model-step.ts", "takeStep"), [
    "loadAnswered(",
    'row.slot === "assistant"',
    "answerFacts(",
    "sizeAtLimit(",
    "ask(step",
    "storeAnswer(",
  ]);
  inOrder(body("activities/step/run-tool.ts", "runTool"), [
    "claimCall(",
    "callHasEnded(",
    "performCall(",
    "return storeResult(",
  ]);
});

/** What each line of ARCHITECTURE's diagram of a step says, and the words of the code that does it, in this order there. */
const DIAGRAM: readonly (readonly [line: string, file: string, ...code: readonly string[]])[] = [
  [
    "all messages stored, then prune or compaction if due",
    "workflows/make-room.ts",
    "prune(run)",
    "compact(run",
    "storeArrived(run)",
  ],
  ["step", "activities/contract/activities.ts", "interface ModelStepInput", "step:"],
  [
    "what waits in the queue as one message, then the view",
    "activities/step/model-step.ts",
    "await deliverGuidance(",
    "takeStep(",
  ],
  [
    "is this step's answer stored?",
    "activities/step/model-step.ts",
    "loadAnswered(",
    "if (paid) return answerFacts(",
  ],
  ["request, streamed", "activities/model/ai-sdk.ts", "streamText"],
  ["pieces", "activities/model/answer.ts", "text-delta", "#onDelta("],
  ["pieces for watchers", "activities/store/events.ts", "const sendChunks = appending(", "streamChunks,"],
  [
    "answer, ledger rows, usage, events: one transaction",
    "activities/store/commit-step.ts",
    "const sendAnswer = appending(",
    "message as",
    "ledger as",
    "bill as",
    "log as",
  ],
  [
    "calls (name, about), usage, context size",
    "activities/contract/activities.ts",
    "name:",
    "about:",
    "calls:",
    "usage:",
    "context:",
  ],
  ["each call in parallel", "workflows/calls.ts", "await Promise.allSettled(", "performCall("],
  ["step, index", "activities/contract/calls.ts", "interface RunToolInput", "step:", "index:"],
  [
    "claim: running, fence + 1",
    "activities/store/tool-calls.ts",
    "function claimCall",
    'status: "running"',
    "fence} + 1",
  ],
  [
    "start or find the command of this call",
    "activities/tools/bash.ts",
    "sandbox.state(id)",
    "sandbox.start(command)",
  ],
  ["how it ended, its output", "activities/sandbox/sandbox.ts", "type CommandState"],
  [
    "result at its reserved sequence, ledger end, event",
    "activities/store/commit-step.ts",
    "update ${toolCalls} set",
    "message as",
    "sequence: sql`place`",
    "log as",
  ],
  [
    "outcome, tokens, hash",
    "activities/contract/calls.ts",
    "interface ToolFacts",
    "outcome:",
    "tokens:",
    "hash:",
  ],
  [
    "files changed: save, in parallel with the next step",
    "activities/step/run-tool.ts",
    "saveSandbox(",
    "saves.around(",
  ],
  [
    "`prune: always` and enough to hide?",
    "activities/contract/budget.ts",
    "function pruneDue",
    '"each-step"',
  ],
];

test("each line of ARCHITECTURE's diagram of a step is what the code does", () => {
  const [diagram = ""] = architecture.match(/(?<=```mermaid\nsequenceDiagram\n)[^]*?(?=```)/) ?? [];
  const lines = diagram
    .split("\n")
    .map((line) => /^ *(?:Note [^:]*: |par |\w+-[^:]*: )(.*)$/.exec(line)?.[1])
    .filter((line) => line !== undefined);
  expect(lines).toHaveLength(DIAGRAM.length);
  for (const [place, [said, file, ...code]] of DIAGRAM.entries()) {
    expect(lines[place]).toMatch(new RegExp(`^${said.replace(/[?()+]/g, "\\$&")}`));
    const text = textOf(file);
    let at = 0;
    for (const words of code) {
      const next = text.indexOf(words, at);
      expect(next, `${file} for "${said}": ${words}`).toBeGreaterThanOrEqual(0);
      at = next;
    }
  }
});

test("ARCHITECTURE's states of a call are those of its row, and lead where the code leads", () => {
  const [diagram = ""] = architecture.match(/(?<=```mermaid\nstateDiagram-v2\n)[^]*?(?=```)/) ?? [];
  const arrows = [...diagram.matchAll(/^ *(\S+) --> (\w+)/gm)].map(
    ([, from = "", to = ""]) => [from, to] as const,
  );
  const [, list = ""] =
    /tool_calls_status_check[^]*? in \(([^)]*)\)/.exec(textOf("activities/store/schema/index.ts")) ?? [];
  const states = list.replaceAll("'", "").split(",");
  expect([...new Set(arrows.map(([, to]) => to))].toSorted()).toEqual(states.toSorted());
  const outcomes = /type ToolOutcome =([^;]*);/.exec(textOf("activities/contract/message.ts"))?.[1] ?? "";
  // What has ended stays so; the others are open.
  const ends = [...outcomes.matchAll(/"(\w+)"/g)].map(([, name = ""]) => name);
  expect(ends.toSorted()).toEqual(
    states.filter((state) => !["pending", "running"].includes(state)).toSorted(),
  );
  expect(arrows.filter(([from]) => ends.includes(from))).toEqual([]);
  for (const end of ends) expect(arrows).toContainEqual(["running", end]);
});
