/** What a person should know of a model's window before the start. Pure. */

/** Servers on which a person chooses a model's window when the server or the model is started. */
export type Runner = "ollama" | "lmstudio" | "llamacpp";

/** A model's window as its server reports it. */
export interface ServedWindow {
  /** Tokens that the server currently serves it with. */
  readonly window?: number | undefined;
  /** Tokens that the model supports. */
  readonly most?: number | undefined;
  /** False: the server says that the model cannot call tools. */
  readonly tools?: false | undefined;
  /** Its kind, if a person chooses windows there. */
  readonly runner?: Runner | undefined;
  /** The server's address. */
  readonly from: string;
}

interface Sizes {
  readonly contextWindow: number;
  readonly maxOutput: number;
}

/** What gives a model a window of so many tokens at its server. Sources: the servers' own manuals. */
export function moreRoom(runner: Runner, tokens: number): string {
  if (runner === "ollama")
    return `Give it more: start Ollama with OLLAMA_CONTEXT_LENGTH=${tokens} (ollama serve), or set PARAMETER num_ctx ${tokens} in the model's Modelfile. Ollama serves 4096 until told otherwise, and cuts longer requests without an error.`;
  if (runner === "lmstudio")
    return `Give it more: load the model with a context length of ${tokens} (lms load --context-length ${tokens}). LM Studio cuts longer requests without an error.`;
  return `Give it more: start llama-server with --ctx-size ${tokens} for each slot (--parallel 1 gives one slot all of it).`;
}

interface Assumption {
  readonly model: string;
  readonly sizes: Sizes;
  readonly served: ServedWindow | undefined;
  /** Of names that are known and nearly the same; empty, or begins with a blank. */
  readonly hint: string;
  /** Whether the server may lack `/responses`. */
  readonly mayBeChat: boolean;
}

/** What is assumed of a model that is in no table, with the lines to add to longhaul.yaml. */
export function assumed({ model, sizes, served, hint, mayBeChat }: Assumption): string {
  const { contextWindow, maxOutput } = sizes;
  const { runner, most, window } = served ?? {};
  const isLoadedLater = window === undefined && runner !== undefined;
  const told =
    window === undefined
      ? `${served === undefined || most === undefined ? "" : `its server ${served.from} says that the model supports ${most} tokens, but not how many it is served with; `}a window of ${contextWindow} tokens and answers of ${maxOutput} are assumed`
      : `its server ${served?.from} gives it a window of ${window} tokens; answers of ${maxOutput} are assumed`;
  return [
    `${model} is in no table: ${told}, its price is unknown.${window === undefined ? hint : ""}${isLoadedLater ? ` The server is asked again once it has loaded the model. ${moreRoom(runner, contextWindow)}` : ""} If that is wrong, add to longhaul.yaml:`,
    "models:",
    `  ${model}:`,
    // What is written there changes nothing at a server that has not loaded the model.
    ...(isLoadedLater ? [] : [`    contextWindow: ${contextWindow}`]),
    `    maxOutput: ${maxOutput}`,
    ...(mayBeChat ? ["    api: chat               # if the server has no /responses"] : []),
  ].join("\n");
}

/** Instructions and tools of a session without settings of its own, with what templates add. A test holds it to their size. */
export const USUAL_PREFIX = 2_500;
/** An answer, and then the least that a conversation needs. Source: ours. */
const ANSWER_ROOM = 4_000;
const LEAST_ROOM = 4_000;
/** A window in which small tasks work well. Source: ours. */
const ENOUGH_WINDOW = 32_768;

/** What a person should know of a window before the start: that the server has less than is configured, or that it is small. */
export function tooLittle(
  model: string,
  { contextWindow, maxOutput }: Sizes,
  { runner, window, most = ENOUGH_WINDOW, from = "" }: Partial<ServedWindow> = {},
): string[] {
  const real = runner === undefined ? contextWindow : Math.min(contextWindow, window ?? contextWindow);
  const room = real - USUAL_PREFIX - Math.min(ANSWER_ROOM, maxOutput);
  const enough = Math.max(contextWindow, Math.min(most, ENOUGH_WINDOW));
  const fix = runner === undefined ? "Use a model or a server with more." : moreRoom(runner, enough);
  const less =
    real < contextWindow
      ? `${from} now runs ${model} with a window of ${real} tokens, and ${contextWindow} are configured (models.${model}.contextWindow)`
      : `${model} has a window of ${real} tokens`;
  if (room >= LEAST_ROOM) return real < contextWindow ? [`${less}. ${fix}`] : [];
  const left =
    room > 0 ? `only some ${room} are left for the conversation` : "nothing is left for the conversation";
  return [`${less}: beside the agent's instructions and tools, and an answer, ${left}. ${fix}`];
}
