/** A session of twenty steps on one server, with everything that happens to sessions: the result of each case. */
import { ActivityCancellationDetails, ApplicationFailure } from "@temporalio/common";
import type { ModelStepFacts } from "../../../activities/contract/activities.ts";
import type { Guidance } from "../../../activities/contract/guidance.ts";
import { switchModel } from "../../../activities/store/session-settings.ts";
import { guidance, createDirectAgent, type DirectAgent } from "../direct-agent.ts";
import { eventually } from "../eventually.ts";
import { DOT_PNG } from "../images.ts";
import { DIALECTS, type DialectName } from "../model-server/dialects/dialects.ts";
import type { ParsedRequest, ServedModel } from "../model-server/wire.ts";
import { scriptedModel, startScriptedModel } from "../scripted-model.ts";
import { goodSummary, isSummaryRequest } from "../scripted-summaries.ts";
import { answersOf } from "../stored.ts";
import type { TestDatabase } from "../test-database.ts";
import {
  answersOfSession,
  CASE_OF,
  CASES,
  STEPS,
  WAIT_SECONDS,
  works,
  type Case,
  type Outcome,
} from "./session-script.ts";
import { MAX_OUTPUT_TOKENS, TARGETS, targetAt, WINDOW_TOKENS } from "./targets.ts";

/** A session that is played, with what came of its cases so far. */
interface Game {
  readonly database: TestDatabase;
  readonly agent: DirectAgent;
  readonly name: DialectName;
  readonly outcome: Partial<Record<Case, string>>;
  /** Whether the server's window is smaller than any prompt. */
  isNarrow: boolean;
}

/** Plays it. Never throws for a fault of the product or the server: that is the outcome. */
export async function playDialect(database: TestDatabase, name: DialectName): Promise<Outcome> {
  const { model, thinks } = TARGETS[name];
  const queue = answersOfSession();
  const served: ServedModel = {
    get window() {
      return game.isNarrow ? 1_000 : WINDOW_TOKENS;
    },
    maxOutput: MAX_OUTPUT_TOKENS,
    input: ["text", "image"],
    reasoning: thinks,
    signatures: true,
  };
  const script = (request: ParsedRequest) => {
    if (isSummaryRequest(request)) return goodSummary(request);
    const reply = queue.shift();
    if (reply === undefined) throw new Error("More was asked than the script has.");
    return reply;
  };
  const agent = await createDirectAgent(database, script, {
    dialect: name,
    served: { [model]: served },
    targetAt: (baseUrl) => targetAt(name, baseUrl),
  });
  const game: Game = { database, agent, name, outcome: {}, isNarrow: false };
  try {
    await agent.sandbox.files.write("dot.png", DOT_PNG);
    await agent.perform("openSession", { chain: agent.runId });
    await takeSteps(game);
  } finally {
    await agent.close();
  }
  const outcomes = CASES.map((name) => [name, game.outcome[name] ?? "not reached"]);
  return Object.fromEntries(outcomes) as Record<Case, string>;
}

async function takeSteps(game: Game): Promise<void> {
  for (let step = 1; step <= STEPS; step += 1) {
    try {
      await (HAPPENINGS[step] ?? answered)(game, step);
    } catch (error) {
      return fail(game, CASE_OF[step] ?? "tools", `step ${step}: ${wordsOf(error)}`);
    }
  }
}

type Happening = (game: Game, step: number) => Promise<void>;

const failsOnce: Happening = (game, step) => answered(game, step, { failures: 1 });

/** What happens at a step; at all others the model answers and its tools run. */
const HAPPENINGS: Readonly<Record<number, Happening>> = {
  async 3(game, step) {
    await answered(game, step);
    check(game, "image", requests(game).at(-1)?.items.some(hasImage) === true, "the image was not sent");
    await checkReasoning(game);
  },
  async 4(game, step) {
    await failsOnce(game, step);
    await checkLimit(game);
  },
  5: failsOnce,
  6: failsOnce,
  async 7(game, step) {
    await failsOnce(game, step);
    pass(game, "cut");
  },
  8: interrupted,
  9: (game, step) => answered(game, step, { messages: [guidance("Begin with the other one.")] }),
  10: interrupted,
  async 11(game, step) {
    await answered(game, step);
    const sent = JSON.stringify(requests(game).at(-1)?.raw);
    const isThere = sent.includes("[interrupted]") && sent.includes("Begin with the other one.");
    check(game, "interrupt", isThere, "what was said and interrupted was not sent");
  },
  13: overflows,
  16: away,
  // Step 16 answers it too, while the other server is running.
  17: async () => undefined,
  async 19(game, step) {
    await answered(game, step);
    pass(game, "switch");
  },
  async [STEPS](game, step) {
    await answered(game, step);
    pass(game, "tools");
  },
};

interface Asking {
  readonly messages?: readonly Guidance[];
  /** How often the step fails before it is answered. */
  readonly failures?: number;
}

/** A step with its calls. @throws Error if it did not end in an answer after exactly that many failures */
async function answered(game: Game, step: number, asking: Asking = {}): Promise<void> {
  const facts = await ask(game, step, asking);
  if (facts.kind !== "answered") throw new Error(`ended as ${facts.kind}`);
  await Promise.all(facts.calls.map((_, index) => game.agent.perform("runTool", { step, index })));
}

async function ask(
  { agent }: Game,
  step: number,
  { messages = [], failures = 0 }: Asking,
): Promise<ModelStepFacts> {
  await agent.say(...messages);
  for (let attempt = 1; ; attempt += 1) {
    try {
      const facts = await agent.perform("modelStep", { step }, { attempt });
      if (attempt <= failures) throw new Error("a broken answer was taken for a whole one");
      return facts;
    } catch (error) {
      if (attempt > failures || !(error instanceof ApplicationFailure) || error.nonRetryable) throw error;
    }
  }
}

async function interrupted({ agent }: Game, step: number): Promise<void> {
  const environment = agent.environment();
  const running = agent.perform("modelStep", { step }, { environment });
  const saysSomething = async () => (await agent.events()).includes("llm:chunk");
  await Promise.race([running, eventually("its first words", saysSomething)]);
  environment.cancel("CANCELLED", new ActivityCancellationDetails({ cancelRequested: true }));
  const { kind } = await running;
  if (kind !== "interrupted") throw new Error(`ended as ${kind}`);
}

async function overflows(game: Game, step: number): Promise<void> {
  if (DIALECTS[game.name].truncates === true) {
    game.outcome.overflow = "–";
    return answered(game, step);
  }
  game.isNarrow = true;
  const facts = await ask(game, step, {}).finally(() => (game.isNarrow = false));
  if (facts.kind !== "overflow") throw new Error(`ended as ${facts.kind}`);
  const compaction = await game.agent.compact({ step, round: 1, trigger: "overflow" });
  if (compaction.kind !== "compacted") throw new Error(`the compaction ended as ${compaction.kind}`);
  await answered(game, step);
  pass(game, "overflow");
}

/** Two steps on a server of another wire. */
async function away(game: Game): Promise<void> {
  const { store } = game.database;
  const { id, model } = game.agent;
  const here = targetAt(game.name, model.baseUrl);
  const name: DialectName = here.api === "responses" ? "anthropic" : "openai";
  const input = ["text", "image"] as const;
  const served = { window: WINDOW_TOKENS, maxOutput: MAX_OUTPUT_TOKENS, input, reasoning: true };
  const script = scriptedModel()
    .answers(...works(16))
    .answers(...works(17));
  const there = await startScriptedModel(script, {
    dialect: name,
    models: { [TARGETS[name].model]: served },
  });
  try {
    if (!(await switchModel(store, id, targetAt(name, there.baseUrl))))
      throw new Error("the model was not switched");
    await answered(game, 16);
    await answered(game, 17);
  } finally {
    await there.close();
    await switchModel(store, id, here);
  }
}

async function checkReasoning(game: Game): Promise<void> {
  const { thoughts } = TARGETS[game.name];
  if (thoughts === "none") {
    game.outcome.reasoning = "–";
    return;
  }
  const answers = await answersOf(game.database.store, game.agent.id);
  const stored = JSON.stringify(answers.map((row) => row.content));
  check(game, "reasoning", stored.includes("Thought 2."), "thoughts were not kept");
  const last = requests(game).at(-1);
  if (thoughts === "returned" && last !== undefined)
    check(game, "reasoning", isReturned(last), "thoughts were not sent back");
}

async function checkLimit(game: Game): Promise<void> {
  const [error] = await game.agent.dataOf("llm:error");
  check(game, "429", error?.class === "rate-limit", `taken for ${error?.class}`);
  if (TARGETS[game.name].tellsWait)
    check(game, "429", (error?.retryInMs ?? 0) >= WAIT_SECONDS * 1_000, `waits ${error?.retryInMs} ms`);
}

const requests = ({ agent }: Game): readonly ParsedRequest[] => agent.model.requests;

function check(game: Game, name: Case, holds: boolean, otherwise: string): void {
  if (holds) pass(game, name);
  else fail(game, name, otherwise);
}

/** A pass does not replace a failure. */
function pass({ outcome }: Game, name: Case): void {
  outcome[name] ??= "✓";
}

function fail({ outcome }: Game, name: Case, what: string): void {
  if (outcome[name] === undefined || outcome[name] === "✓") outcome[name] = what;
}

function hasImage(item: ParsedRequest["items"][number]): boolean {
  return "parts" in item && item.parts.some((part) => part.type === "image");
}

/** Whether a request contains an earlier answer's thoughts, in its wire's form. */
function isReturned({ api, items, raw }: ParsedRequest): boolean {
  if (api === "gemini") return JSON.stringify(raw["contents"]).includes("thoughtSignature");
  if (api === "chat") return JSON.stringify(raw["messages"]).includes("Thought 2.");
  return items.some((item) => item.type === "reasoning" && item.encrypted !== undefined);
}

function wordsOf(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split("\n", 1)[0] ?? "";
}
