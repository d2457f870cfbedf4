/** Requests to forges and stores, through the environment's proxies as git's own: a forge's answers, and which failures may pass. */
import type { ForgePlace } from "../config/git-settings.ts";
import { isNetworkTrouble, passes, innermostReason } from "../contract/errors.ts";
import { readJson, bodyText } from "../process/bounded-body.ts";
import { createOutgoing, type BoundedFetch, type Outgoing } from "../process/outgoing-fetch.ts";
import { serverWords, noAnswerReason } from "./trouble.ts";

let made: Promise<Outgoing> | undefined;

/** Has no time limit but the caller's. */
export const gitFetch: BoundedFetch = async (input, init) => {
  made ??= createOutgoing();
  return (await made).fetch(input, init);
};

/** Slower than this on the whole is no progress either. Chosen: the slowest links that people work with are faster. */
const SLOWEST_BYTES_PER_SECOND = 10_000;

/** Abandons a request that makes no progress for this time, or takes far too long for that many bytes. */
export function patience(signal: AbortSignal, silenceMs: number, bytes: number) {
  const silent = new AbortController();
  const why = new Error(`no progress for ${silenceMs / 1_000} s`);
  const timer = setTimeout(() => silent.abort(why), silenceMs);
  const tooSlow = AbortSignal.timeout(silenceMs + Math.ceil(bytes / SLOWEST_BYTES_PER_SECOND) * 1_000);
  return {
    signal: AbortSignal.any([signal, silent.signal, tooSlow]),
    /** The same pieces; each is progress. */
    async *heard(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const piece of pieces) {
        timer.refresh();
        yield piece;
      }
    },
    end: () => clearTimeout(timer),
  };
}

/** The forge refused the request, or gave no usable answer. */
export class ForgeRefusal extends Error {
  override readonly name = "ForgeRefusal";
  /** 0 if there was no answer. */
  readonly status: number;
  /** Whether asking again may help. */
  readonly isPassing: boolean;

  constructor(status: number, message: string, isPassing = passes.http(status)) {
    super(message);
    this.status = status;
    this.isPassing = isPassing;
  }
}

const TIMEOUT_MS = 30_000;

export interface ForgeCall {
  readonly forge: ForgePlace;
  /** Of `user:token`, only the token is sent. */
  readonly token: string | undefined;
  readonly signal: AbortSignal;
}

/** @returns the answer's JSON. @throws ForgeRefusal */
export async function askForge(
  { forge, token, signal }: ForgeCall,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  let response: Response;
  try {
    response = await gitFetch(`${forge.api}${path}`, {
      method,
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      headers: {
        accept: forge.kind === "github" ? "application/vnd.github+json" : "application/json",
        "user-agent": "longhaul",
        ...(forge.kind === "github" ? { "x-github-api-version": "2022-11-28" } : {}),
        ...(token === undefined ? {} : { authorization: `Bearer ${token.slice(token.indexOf(":") + 1)}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new ForgeRefusal(0, noAnswerReason(forge.api, error), isNetworkTrouble(error));
  }
  if (response.ok)
    return await readJson(response).catch((error: unknown) => {
      signal.throwIfAborted();
      throw new ForgeRefusal(502, `${forge.api} did not answer in JSON: ${innermostReason(error)}`);
    });
  const text = await bodyText(response).catch(() => "");
  throw new ForgeRefusal(response.status, `${forge.api} answered ${response.status}: ${wordsOf(text)}`);
}

function wordsOf(text: string): string {
  try {
    const { message, errors, error } = JSON.parse(text) as Record<string, unknown>;
    return serverWords(JSON.stringify([message ?? error, errors].filter((part) => part !== undefined)));
  } catch {
    return serverWords(text);
  }
}
