/** How far estimates are from the bill: by kind of text, and for the next prompt of a conversation. No services. */
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import type { Message, StoredMessage } from "../../../activities/context/message.ts";
import { viewSize } from "../../../activities/context/size.ts";
import { estimateText, learnRatio, type TokenRatio } from "../../../activities/context/tokens.ts";
import { prefixMaker } from "../../../activities/model/request.ts";
import { systemPrompt } from "../../../activities/system-prompt.ts";
import { toolRegistry, toolSpecs } from "../../../activities/tools/index.ts";
import { Biller } from "../../../worker/local/model-server/bill.ts";
import type { ParsedRequest, WireItem } from "../../../worker/local/model-server/wire.ts";
import { calls, result, rowsOf, user } from "../../support/rows.ts";
import { samples } from "../../unit/context/samples.ts";
import { median, quantile } from "../stats.ts";
import type { Figure } from "../table.ts";

const STEPS = 200;
const WINDOW_TOKENS = 128_000;
/** Goals are issue 4's: the context engine. */
const LATER = { laterIssue: 4 } as const;

type Kind = keyof typeof samples;

/** Bounds of a pure estimate in percent. Source: requirement 9. */
const PURE: Partial<Record<Kind, number>> = { prose: 5, typescript: 5, chinese: 5, toolOutput: 20 };

export async function measureTokens(): Promise<Figure[]> {
  const pure = (Object.keys(samples) as Kind[]).map((kind): Figure => {
    const actual = encode(samples[kind]).length;
    const bound = PURE[kind];
    return {
      name: `pure estimate, ${kind}`,
      value: Math.abs(estimateText(samples[kind]) / actual - 1) * 100,
      unit: "%",
      n: 1,
      ...(bound === undefined ? {} : { goal: { of: "value", atMost: bound, ...LATER } as const }),
    };
  });
  const { errors, pureErrors, ms, tokens } = converse();
  return [
    {
      name: "next prompt against its bill, median",
      value: median(errors),
      unit: "%",
      n: errors.length,
      goal: { of: "value", atMost: 0.5, ...LATER },
      note: `a conversation of ${STEPS} steps up to ${tokens} tokens; without a bill ${median(pureErrors).toFixed(2)} %`,
    },
    {
      name: "next prompt against its bill, p95",
      value: quantile(errors, 0.95),
      unit: "%",
      n: errors.length,
      goal: { of: "value", atMost: 3, ...LATER },
    },
    ...pure,
    {
      name: "estimate of a step (view and new messages)",
      value: median(ms),
      unit: "ms",
      n: ms.length,
      goal: { of: "value", atMost: 1, ...LATER },
      note: `p95 ${quantile(ms, 0.95).toFixed(2)} ms`,
    },
  ];
}

interface Conversation {
  readonly errors: number[];
  /** Of the estimate that a compaction would leave us with. */
  readonly pureErrors: number[];
  readonly ms: number[];
  readonly tokens: number;
}

/** Bills each request with a real tokenizer, as the strict model server does, and compares what was foreseen. */
function converse(): Conversation {
  const system = systemPrompt(undefined);
  const prefix = prefixMaker(toolRegistry)(system);
  const biller = new Biller((text) => encode(text).length);
  const tools = toolSpecs().map(({ name, description, inputSchema: schema }) => ({
    name,
    description,
    schema,
  }));
  const request = { tools, system } as unknown as ParsedRequest;
  const random = createRandom(11);
  let rows: StoredMessage[] = rowsOf([user(`Build the importer.\n${piece("prose", random, 2_000)}`)]);
  let learnt: TokenRatio | undefined;
  const out = { errors: [] as number[], pureErrors: [] as number[], ms: [] as number[] };
  let actual = 0;
  for (let step = 1; step <= STEPS; step += 1) {
    const ratio = learnt?.ratio ?? 1;
    const measure = { prefixTokens: prefix.tokens, ratio, windowTokens: WINDOW_TOKENS };
    const size = viewSize({ rows, ...measure });
    actual = biller.measure({ ...request, items: rows.flatMap(itemsOf) }).tokens;
    if (step > 1) {
      out.errors.push(Math.abs(size.next.tokens / actual - 1) * 100);
      out.pureErrors.push(Math.abs((size.pureTokens * ratio) / actual - 1) * 100);
    }
    learnt = learnRatio(learnt, size.pureTokens, actual);
    const messages = stepMessages(step, random);
    const output = itemsOf(messages[0] as StoredMessage).reduce(
      (sum, item) => sum + outputOf(item, biller),
      0,
    );
    const began = performance.now();
    const added = rowsOf(messages, rows.length + 1, step - 1);
    viewSize({ rows: [...rows, ...added], ...measure });
    out.ms.push(performance.now() - began);
    const [answer, ...results] = added;
    rows = [...rows, { ...(answer as StoredMessage), usage: { input: actual, output } }, ...results];
  }
  return { ...out, tokens: actual };
}

/** Half tool output, a third TypeScript, the rest JSON, prose and Chinese; of very different lengths. */
function stepMessages(step: number, random: () => number): Message[] {
  const dice = random();
  const kind: Kind =
    dice < 0.5
      ? "toolOutput"
      : dice < 0.8
        ? "typescript"
        : dice < 0.9
          ? "json"
          : dice < 0.97
            ? "prose"
            : "chinese";
  const id = `call_${step}`;
  const input = { command: `sed -n 1,${step}p src/file-${step}.ts` };
  const words = piece("prose", random, 300);
  return [calls(words, { id, name: "bash", input }), result(id, piece(kind, random, 8_000))];
}

function piece(kind: Kind, random: () => number, most: number): string {
  const text = samples[kind];
  const chars = Math.max(1, Math.floor(random() ** 2 * Math.min(most, text.length)));
  const from = Math.floor(random() * Math.max(1, text.length - chars));
  return text.slice(from, from + chars).toWellFormed();
}

function itemsOf(row: Message): WireItem[] {
  return row.content.map((part): WireItem => {
    switch (part.type) {
      case "tool-call":
        return {
          type: "call",
          callId: part.toolCallId,
          name: part.toolName,
          arguments: JSON.stringify(part.input),
        };
      case "tool-result":
        return { type: "result", callId: part.toolCallId, parts: [{ type: "text", text: part.text }] };
      case "text":
      case "reasoning":
      case "file": {
        const role = row.role === "user" ? "user" : "assistant";
        return { type: "message", role, parts: [{ type: "text", text: "text" in part ? part.text : "" }] };
      }
    }
  });
}

function outputOf(item: WireItem, biller: Biller): number {
  if (item.type === "call") return biller.count(item.name + item.arguments);
  return item.type === "message"
    ? biller.count(item.parts.map((part) => ("text" in part ? part.text : "")).join(""))
    : 0;
}

/** The same numbers in every run. */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
