/** What sessions of the reset runs do: each answer follows from the request, and names its step and the line that gave it. */
import { z } from "zod";
import type { ModelTarget } from "../../../activities/config/model-target.ts";
import { defineTool } from "../../../activities/tools/own/define-tool.ts";
import { parseOwnTools } from "../../../activities/tools/own/own-tools.ts";
import type { StartOptions } from "../agent-harness.ts";
import { startMcpServer, withServers } from "../mcp-server.ts";
import { CANARY } from "../canary.ts";
import { createFakeForge } from "../fake-forge.ts";
import { gitIn, makeRemote, onRepository, serveGit } from "../remotes.ts";
import { batchItem, fork, scheduled, type Maker } from "./makers.ts";
import type { ConfigChanges } from "../run-config.ts";
import { stepOf } from "../crash/scripts.ts";
import { delegating } from "../delegating.ts";
import type { ParsedRequest, Reply, ReplyPart } from "../model-server/wire.ts";
import { call, text } from "../scripted-model.ts";
import { goodSummary, isSummaryRequest, wordsOf } from "../scripted-summaries.ts";
import { askedAs } from "../run-config.ts";

/** What has to be there for a session, such as a server. */
export interface Surroundings {
  readonly config: ConfigChanges;
  /** What is wrong there when a run of the session has ended. */
  readonly unsound?: (sessionId: string) => string | undefined;
}

export interface Shape {
  readonly name: ShapeName;
  readonly config?: ConfigChanges;
  readonly served?: StartOptions["served"];
  readonly surroundings?: () => Promise<Surroundings>;
  /** What the last step says, if not the step and its line alone. */
  readonly answer?: (answerText: string) => string;
  /** A model's refusal of a step. */
  readonly refusal?: { readonly step: number; readonly model: string };
  /** What is reset is a session that comes from the first one, which has ended. */
  readonly makes?: Maker;
  /** The calls of a step; none for the last. */
  readonly calls: (step: number, requestText: string) => readonly ReplyPart[];
  /** Said when the first run has ended. */
  readonly says?: string;
  /** A signal that is sent when this step is first asked for. */
  readonly signal?: { readonly step: number; readonly name: string };
  /** The client's retry from this step, when the first run has ended. */
  readonly retryFrom?: number;
}

const SHAPE_NAMES = [
  "plain",
  "parallel",
  "question",
  "approval",
  "park",
  "resume",
  "compaction",
  "prune",
  "undo",
  "continued",
  "delegates",
  "retry",
  "structured",
  "budget",
  "fallback",
  "own tool",
  "MCP",
  "guidance",
  "fork",
  "delivery",
  "pull request",
  "batch item",
  "scheduled",
] as const;
type ShapeName = (typeof SHAPE_NAMES)[number];

const echo = (step: number, position = 0) =>
  call("bash", { command: `echo result ${step}.${position} >> all.txt; echo result ${step}.${position}` });
const until = (last: number, of: (step: number) => readonly ReplyPart[]) => (step: number) =>
  step < last ? of(step) : [];
const noisy = (step: number, lines: number) =>
  call("bash", { command: `for i in $(seq ${lines}); do echo "line $i of step ${step}"; done` });
const ask = call("ask_user", { question: "Which one?", options: ["one", "two"] });
const questions = { mode: "ask", parkAfter: 600_000, maxOpen: 8 } as const;

const other: ModelTarget = {
  ...askedAs("openai/other"),
  contextWindow: 64_000,
  maxOutput: 4_000,
  api: "responses",
  input: ["text"],
  price: { input: 10, cached: 1, output: 20 },
};
const outputSchema = { type: "object", properties: { said: { type: "string" } }, required: ["said"] };

/** The operator's tool of the worker that plays these shapes. */
export const OWN_TOOLS = parseOwnTools([
  defineTool({
    name: "own_echo",
    description: "Repeats a number.",
    input: z.object({ step: z.number() }),
    run: ({ step }) => `own result ${String(step)}`,
  }),
]);

async function mcpServer(): Promise<Surroundings> {
  const { url } = await startMcpServer((server) => {
    const inputSchema = z.object({ step: z.number() });
    server.registerTool("echo", { description: "Repeats.", inputSchema }, ({ step }) => ({
      content: [{ type: "text", text: `MCP result ${step}` }],
    }));
  });
  return { config: withServers({ far: { url } }) };
}

async function onForge(): Promise<Surroundings> {
  const remote = makeRemote();
  const branches = () => gitIn(remote.folder, "branch", "--format=%(refname:short)").split("\n");
  const forge = createFakeForge(CANARY, branches);
  const { origin } = await serveGit(remote, CANARY, forge.handle);
  const unsound = (id: string) => {
    const open = forge.requests.filter(({ branch }) => branch === `longhaul/${id}`);
    return open.length === 1 ? undefined : `${open.length} pull requests`;
  };
  return { config: onRepository(`${origin}/acme/app.git`, { pr: "ready", forge: "github" }), unsound };
}

const commit = (step: number) =>
  call("bash", {
    command: `echo ${step} > ${step}.txt && git add . && git commit -qm "Step ${step}" && echo committed`,
  });

export const SHAPES: readonly Shape[] = [
  { name: "plain", calls: until(5, (step) => [echo(step)]) },
  { name: "parallel", calls: until(3, (step) => [echo(step), echo(step, 1), echo(step, 2)]) },
  {
    name: "question",

    config: { questions },
    calls: until(4, (step) => (step === 2 ? [echo(step), ask] : [echo(step)])),
  },
  {
    name: "approval",

    config: { questions, permissions: [{ tool: "write_file", action: "ask" }] },
    calls: until(4, (step) =>
      step === 2
        ? [call("write_file", { path: "asked.txt", content: "written" }), echo(step, 1)]
        : [echo(step)],
    ),
  },
  {
    name: "park",

    config: { questions: { ...questions, parkAfter: 50 } },
    calls: until(4, (step) => (step === 2 ? [ask] : [echo(step)])),
  },
  {
    name: "resume",

    says: "Please go on.",
    calls: (step, requestText) =>
      step < (requestText.includes("Please go on.") ? 5 : 3) ? [echo(step)] : [],
  },
  {
    name: "compaction",

    config: { context: { options: { keepMessages: 2 } } },
    signal: { step: 3, name: "compact" },
    calls: until(6, (step) => [noisy(step, 40)]),
  },
  {
    name: "prune",

    config: {
      contextWindow: 32_000,
      maxOutput: 1_000,
      context: { options: { prune: "always", pruneProtect: 6_400, pruneMinimum: 4_800 } },
    },
    calls: until(8, (step) => [noisy(step, 300)]),
  },
  {
    name: "undo",

    config: { context: { options: { keepMessages: 2 } } },
    signal: { step: 3, name: "compactAndUndo" },
    calls: until(6, (step) => [noisy(step, 40)]),
  },
  {
    name: "continued",

    // The fewest that the settings allow.
    config: { limits: { maxHistoryEvents: 50 } },
    calls: until(8, (step) => [echo(step)]),
  },
  {
    name: "delegates",

    config: delegating(),
    calls: until(4, (step) =>
      step === 2 ? [call("delegate", { task: "A task for another." }), echo(step, 1)] : [echo(step)],
    ),
  },
  { name: "retry", retryFrom: 2, calls: until(4, (step) => [echo(step)]) },
  {
    name: "structured",
    config: { outputSchema },
    answer: (said) => JSON.stringify({ said }),
    calls: until(4, (step) => [echo(step)]),
  },
  {
    name: "budget",
    config: { questions, limits: { maxSteps: 2, onLimit: "ask" } },
    calls: until(4, (step) => [echo(step)]),
  },
  {
    name: "fallback",
    config: { fallback: [other] },
    served: { "gpt-4o": { window: 128_000 }, other: { window: 64_000 } },
    refusal: { step: 3, model: "gpt-4o" },
    calls: until(5, (step) => [echo(step)]),
  },
  { name: "own tool", calls: until(4, (step) => [call("own_echo", { step }), echo(step)]) },
  {
    name: "MCP",
    surroundings: mcpServer,
    calls: until(4, (step) => [call("far__echo", { step }), echo(step)]),
  },
  { name: "guidance", signal: { step: 2, name: "guidance" }, calls: until(5, (step) => [echo(step)]) },
  { name: "fork", makes: fork, calls: until(5, (step) => [echo(step)]) },
  {
    name: "delivery",
    surroundings: async () => ({ config: onRepository(makeRemote().url) }),
    calls: until(4, (step) => [commit(step)]),
  },
  { name: "pull request", surroundings: onForge, calls: until(3, (step) => [commit(step)]) },
  { name: "batch item", makes: batchItem, calls: until(4, (step) => [echo(step)]) },
  { name: "scheduled", makes: scheduled, calls: until(4, (step) => [echo(step)]) },
];

const REFUSED: Reply = {
  error: {
    status: 429,
    message: "You exceeded your current quota.",
    code: "insufficient_quota",
    headers: {},
  },
  parts: [],
};

/** @param line that a new answer belongs to */
export function playShape(shape: Shape, line: () => number, first: (step: number) => Promise<void>) {
  const seen = new Set<number>();
  return async (request: ParsedRequest): Promise<Reply> => {
    if (isSummaryRequest(request)) return goodSummary(request);
    const requestText = wordsOf(request);
    const step = stepOf(request);
    if (requestText.includes("A task for another.") && !requestText.includes('"delegate"'))
      return { parts: [text("The other has done it.")] };
    if (!seen.has(step)) {
      seen.add(step);
      await first(step);
    }
    const { refusal, answer = (answerText: string) => answerText } = shape;
    if (refusal?.step === step && request.model === refusal.model) return REFUSED;
    const calls = shape.calls(step, requestText);
    const stepText = `Step ${step}. Line ${line()}.`;
    return { parts: [text(calls.length === 0 ? answer(stepText) : stepText), ...calls] };
  };
}
