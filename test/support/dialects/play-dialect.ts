/** A session of twenty steps on one server, with everything that happens to sessions: the result of each case. */
import { ActivityCancellationDetails, ApplicationFailure } from "@temporalio/common";
import type { ModelStepFacts } from "../../../activities/contract/activities.ts";
import type { Guidance } from "../../../activities/contract/guidance.ts";
import { readEvents } from "../../../activities/store/events.ts";
import { switchModel } from "../../../activities/store/switch-model.ts";
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

/** Plays it. Never throws for a fault of the product or the server: that is the outcome. */
export async function playDialect(database: TestDatabase, name: DialectName): Promise<Outcome> {
  const { model } = TARGETS[name];
  const queue = answersOfSession();
  let isNarrow = false;
  const served: ServedModel = {
    get window() {
      return isNarrow ? 1_000 : WINDOW_TOKENS;
    },
    maxOutput: MAX_OUTPUT_TOKENS,
    input: ["text", "image"],
    reasoning: TARGETS[name].thinks,
    signatures: true,
  };
  const agent = await createDirectAgent(
    database,
    (request) => {
      if (isSummaryRequest(request)) return goodSummary(request);
      const reply = queue.shift();
      if (reply === undefined) throw new Error("More was asked than the script has.");
      return reply;
    },
    {
      dialect: name,
      served: { [model]: served },
      targetAt: (baseUrl) => targetAt(name, baseUrl),
    },
  );
  await agent.sandbox.files.write("dot.png", DOT_PNG);
  const session = new DialectSession(database, agent, name, (narrow) => (isNarrow = narrow));
  try {
    return await session.play();
  } finally {
    await agent.close();
  }
}

class DialectSession {
  readonly #outcome: Partial<Record<Case, string>> = {};
  readonly #database: TestDatabase;
  readonly #agent: DirectAgent;
  readonly #name: DialectName;
  readonly #narrow: (narrow: boolean) => void;

  constructor(
    database: TestDatabase,
    agent: DirectAgent,
    name: DialectName,
    narrow: (narrow: boolean) => void,
  ) {
    this.#database = database;
    this.#agent = agent;
    this.#name = name;
    this.#narrow = narrow;
  }

  async play(): Promise<Outcome> {
    await this.#agent.perform("openSession", { chain: this.#agent.runId });
    for (let step = 1; step <= STEPS; step += 1) {
      try {
        await this.#take(step);
      } catch (error) {
        this.#fail(CASE_OF[step] ?? "tools", `step ${step}: ${wordsOf(error)}`);
        break;
      }
    }
    const outcome = CASES.map((one) => [one, this.#outcome[one] ?? "not reached"]);
    return Object.fromEntries(outcome) as Record<Case, string>;
  }

  async #take(step: number): Promise<void> {
    switch (step) {
      case 3:
        await this.#answered(step);
        this.#check(
          "image",
          this.#requests().at(-1)?.items.some(hasImage) === true,
          "the image was not sent",
        );
        return this.#checkReasoning();
      case 4:
        await this.#answered(step, [], 1);
        return this.#checkLimit();
      case 7:
        await this.#answered(step, [], 1);
        return this.#pass("cut");
      case 5:
      case 6:
        return this.#answered(step, [], 1);
      case 8:
      case 10:
        return this.#interrupted(step);
      case 9:
        return this.#answered(step, [guidance("Begin with the other one.")]);
      case 11: {
        await this.#answered(step);
        const sent = JSON.stringify(this.#requests().at(-1)?.raw);
        const isThere = sent.includes("[interrupted]") && sent.includes("Begin with the other one.");
        return this.#check("interrupt", isThere, "what was said and interrupted was not sent");
      }
      case 13:
        return this.#overflows(step);
      case 16:
        return this.#away();
      case 17:
        // Step 16 answers it too, while the other server is running.
        return;
      case 19:
        await this.#answered(step);
        return this.#pass("switch");
      case STEPS:
        await this.#answered(step);
        return this.#pass("tools");
      default:
        return this.#answered(step);
    }
  }

  /** A step with its calls. @throws Error if it did not end in an answer after exactly that many failures */
  async #answered(step: number, said: readonly Guidance[] = [], failures = 0): Promise<void> {
    const facts = await this.#ask(step, said, failures);
    if (facts.kind !== "answered") throw new Error(`ended as ${facts.kind}`);
    await Promise.all(facts.calls.map((_, index) => this.#agent.perform("runTool", { step, index })));
  }

  async #ask(step: number, said: readonly Guidance[], failures: number): Promise<ModelStepFacts> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const facts = await this.#agent.perform("modelStep", { step, guidance: said }, { attempt });
        if (attempt <= failures) throw new Error("a broken answer was taken for a whole one");
        return facts;
      } catch (error) {
        if (attempt > failures || !(error instanceof ApplicationFailure) || error.nonRetryable) throw error;
      }
    }
  }

  async #interrupted(step: number): Promise<void> {
    const environment = this.#agent.environment();
    const running = this.#agent.perform("modelStep", { step, guidance: [] }, { environment });
    await Promise.race([running, eventually("its first words", () => this.#saysSomething())]);
    environment.cancel("CANCELLED", new ActivityCancellationDetails({ cancelRequested: true }));
    const { kind } = await running;
    if (kind !== "interrupted") throw new Error(`ended as ${kind}`);
  }

  async #saysSomething(): Promise<boolean> {
    return (await this.#agent.events()).includes("llm:chunk");
  }

  async #overflows(step: number): Promise<void> {
    if (DIALECTS[this.#name].truncates === true) {
      await this.#answered(step);
      this.#outcome.overflow = "–";
      return;
    }
    this.#narrow(true);
    const facts = await this.#ask(step, [], 0).finally(() => this.#narrow(false));
    if (facts.kind !== "overflow") throw new Error(`ended as ${facts.kind}`);
    const done = await this.#agent.compact({ step, round: 1, trigger: "overflow" });
    if (done.kind !== "compacted") throw new Error(`the compaction ended as ${done.kind}`);
    await this.#answered(step);
    this.#pass("overflow");
  }

  /** Two steps on a server of another wire. */
  async #away(): Promise<void> {
    const here = targetAt(this.#name, this.#agent.model.baseUrl);
    const name: DialectName = here.api === "responses" ? "anthropic" : "openai";
    const there = await startScriptedModel(
      scriptedModel()
        .answers(...works(16))
        .answers(...works(17)),
      {
        dialect: name,
        models: {
          [TARGETS[name].model]: {
            window: WINDOW_TOKENS,
            maxOutput: MAX_OUTPUT_TOKENS,
            input: ["text", "image"],
            reasoning: true,
          },
        },
      },
    );
    const { store } = this.#database;
    try {
      await this.#switch(targetAt(name, there.baseUrl));
      await this.#answered(16);
      await this.#answered(17);
    } finally {
      await there.close();
      await switchModel(store, this.#agent.id, here);
    }
  }

  async #switch(target: ReturnType<typeof targetAt>): Promise<void> {
    if (!(await switchModel(this.#database.store, this.#agent.id, target)))
      throw new Error("the model was not switched");
  }

  async #checkReasoning(): Promise<void> {
    const { thoughts } = TARGETS[this.#name];
    if (thoughts === "none") {
      this.#outcome.reasoning = "–";
      return;
    }
    const stored = JSON.stringify(
      (await answersOf(this.#database.store, this.#agent.id)).map((row) => row.content),
    );
    this.#check("reasoning", stored.includes("Thought 2."), "thoughts were not kept");
    const last = this.#requests().at(-1);
    if (thoughts === "returned" && last !== undefined)
      this.#check("reasoning", isReturned(last), "thoughts were not sent back");
  }

  async #checkLimit(): Promise<void> {
    const events = await readEvents(this.#database.store.db, this.#agent.id, 0, 1_000);
    const error = events.find(({ type }) => type === "llm:error")?.data as
      | { readonly class?: string; readonly retryInMs?: number | null }
      | undefined;
    this.#check("429", error?.class === "rate-limit", `taken for ${error?.class}`);
    if (TARGETS[this.#name].tellsWait)
      this.#check("429", (error?.retryInMs ?? 0) >= WAIT_SECONDS * 1_000, `waits ${error?.retryInMs} ms`);
  }

  #requests(): readonly ParsedRequest[] {
    return this.#agent.model.requests;
  }

  #check(one: Case, holds: boolean, otherwise: string): void {
    if (holds) this.#pass(one);
    else this.#fail(one, otherwise);
  }

  /** A pass does not replace a failure. */
  #pass(one: Case): void {
    this.#outcome[one] ??= "✓";
  }

  #fail(one: Case, what: string): void {
    if (this.#outcome[one] === undefined || this.#outcome[one] === "✓") this.#outcome[one] = what;
  }
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
