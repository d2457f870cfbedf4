/**
 * A model that plays a script behind the strict model server: tests set its answers and read its requests.
 * A request beyond the script gets a 500, and `close` throws, so that the test fails.
 */
import { encode } from "gpt-tokenizer/encoding/o200k_base";
import type { DialectName } from "./model-server/dialects/dialects.ts";
import { createModelServer } from "./model-server/create-model-server.ts";
import type { ParsedRequest, Reply, ReplyPart, ServedModel, ServedRequest } from "./model-server/wire.ts";

export type Turn = Reply | ((request: ParsedRequest, index: number) => Reply | Promise<Reply>);
type CallOptions = { readonly callId?: string; readonly cut?: boolean };

export const text = (value: string): ReplyPart => ({ type: "text", text: value });
export const thought = (value: string, encrypted = true): ReplyPart => ({
  type: "reasoning",
  text: value,
  encrypted,
});
/** @param args a text is sent unchanged, JSON or not */
export const call = (name: string, args: unknown, options: CallOptions = {}): ReplyPart => ({
  type: "call",
  name,
  arguments: args,
  ...options,
});

/**
 * A queue of answers; each method but `with` adds one answer.
 * @example scriptedModel().calls("bash", { command: "ls" }).says("Done.")
 */
export class ModelScript {
  readonly turns: Turn[] = [];
  last: Turn | undefined;

  says(value: string): this {
    return this.answers(text(value));
  }
  /** One answer with one call, after a text if `says` is given. */
  calls(name: string, args: unknown, options: CallOptions & { readonly says?: string } = {}): this {
    const { says, ...rest } = options;
    return this.answers(...(says === undefined ? [] : [text(says)]), call(name, args, rest));
  }
  /** One answer of several parts, in order: `text`, `thought`, `call`, and wait, hang, drop, end, error, garbage. */
  answers(...parts: ReplyPart[]): this {
    return this.replies({ parts });
  }
  /** Adds usage, finish, delays or `beforeHeaders` to the newest answer. */
  with(options: Omit<Reply, "parts">): this {
    const newest = this.turns.pop();
    if (newest === undefined || typeof newest === "function") throw new Error("`with` follows an answer");
    return this.replies({ ...newest, ...options });
  }
  /** An HTTP error, `times` times (default once). */
  fails(
    status: number,
    message = `scripted ${status}`,
    options: {
      readonly code?: string;
      readonly headers?: Readonly<Record<string, string>>;
      readonly times?: number;
    } = {},
  ): this {
    const code = options.code === undefined ? {} : { code: options.code };
    const error = { status, message, ...code, headers: options.headers ?? {} };
    for (let time = 0; time < (options.times ?? 1); time += 1) this.replies({ error });
    return this;
  }
  /** A rate limit in the server's own form: asks for a wait in seconds, in a header, a text or a field. */
  limits(seconds: number): this {
    return this.replies({ error: { status: 429, rateLimitSeconds: seconds } });
  }
  /** One answer as data, or decided when its request arrives. */
  replies(turn: Turn): this {
    this.turns.push(turn);
    return this;
  }
  /** The answer to every request once the queue is empty; a script may consist of it. */
  forever(turn: Turn): this {
    this.last = turn;
    return this;
  }
}

export function scriptedModel(): ModelScript {
  return new ModelScript();
}

export interface ScriptedModelOptions {
  /** In addition to `gpt-4o` and `o3`, or overriding them. */
  readonly models?: Readonly<Record<string, ServedModel>> | undefined;
  readonly port?: number | undefined;
  readonly apiKey?: string | undefined;
  /** False in long runs, if the requests would fill the memory: only the script sees them. */
  readonly keepRequests?: boolean | undefined;
  /** The server to play, with its stream, refusals and errors; default: the wires as their owners document them. */
  readonly dialect?: DialectName | undefined;
  /** What it answers to a GET of another path; undefined: 404. */
  readonly documents?: ((path: string) => unknown) | undefined;
  /** The server's tokenizer, for bills and the window. Default `countTokens`. */
  readonly countTokens?: ((text: string) => number) | undefined;
}

export interface ScriptedModelServer {
  /** For OPENAI_BASE_URL. */
  readonly baseUrl: string;
  /** Accepted requests, in order. */
  readonly requests: readonly ParsedRequest[];
  /** All requests, also refused ones, with times and bills. */
  readonly log: readonly ServedRequest[];
  /** Requests whose client hung up before the answer was complete. */
  readonly aborts: readonly ServedRequest[];
  /** Answers of the queue that were not requested. */
  readonly remaining: number;
  /** @throws Error if a request came beyond the script */
  close(): Promise<void>;
}

/** The real tokenizer of OpenAI's models since gpt-4o; special tokens in a text count as text. */
export function countTokens(value: string): number {
  return encode(value, { allowedSpecial: new Set(), disallowedSpecial: new Set() }).length;
}

const MODELS: Readonly<Record<string, ServedModel>> = {
  "gpt-4o": { window: 128_000, maxOutput: 16_384, input: ["text", "image", "pdf"] },
  o3: { window: 200_000, maxOutput: 100_000, input: ["text", "image", "pdf"], reasoning: true },
};

/** Starts the server with its script; a function is the same as `scriptedModel().forever(function)`. */
export async function startScriptedModel(
  script: ModelScript | Turn,
  options: ScriptedModelOptions = {},
): Promise<ScriptedModelServer> {
  const played = script instanceof ModelScript ? script : scriptedModel().forever(script);
  const queue = [...played.turns];
  const problems: string[] = [];
  const requests: ParsedRequest[] = [];
  let count = 0;
  const aborts: ServedRequest[] = [];
  const server = await createModelServer({
    models: { ...MODELS, ...options.models },
    countTokens: options.countTokens ?? countTokens,
    port: options.port,
    apiKey: options.apiKey,
    dialect: options.dialect,
    documents: options.documents,
    onAbort: (served) => aborts.push(served),
    reply: (request) => {
      const index = count;
      count += 1;
      if (options.keepRequests !== false) requests.push(request);
      else for (const served of server.log) delete served.request;
      const turn = queue.shift() ?? played.last;
      if (turn !== undefined) return typeof turn === "function" ? turn(request, index) : turn;
      problems.push(`request ${index + 1}: ${JSON.stringify(request.items.at(-1)).slice(0, 300)}`);
      throw new Error(`The script has no answer for request ${index + 1}.`);
    },
  });
  return {
    baseUrl: server.url,
    requests,
    log: server.log,
    aborts,
    get remaining() {
      return queue.length;
    },
    close: async () => {
      await server.close();
      if (problems.length > 0)
        throw new Error(`Unscripted requests reached the model: ${problems.join("; ")}`);
    },
  };
}
