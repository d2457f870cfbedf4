/** Calls of a forge's API: its answers, and which failures may pass. */
import type { ForgePlace } from "../config/forge-place.ts";
import { isNetworkTrouble, passes, innermostReason } from "../contract/errors.ts";
import { gitFetch } from "./outgoing.ts";
import { readJson, readText } from "../process/bounded-body.ts";
import { serverWords, unanswered } from "./trouble.ts";

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
  readonly place: ForgePlace;
  /** Of `user:token`, only the token is sent. */
  readonly token: string | undefined;
  readonly signal: AbortSignal;
}

/** @returns the answer's JSON. @throws ForgeRefusal */
export async function askForge(
  { place, token, signal }: ForgeCall,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  let response: Response;
  try {
    response = await gitFetch(`${place.api}${path}`, {
      method,
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      headers: {
        accept: place.kind === "github" ? "application/vnd.github+json" : "application/json",
        "user-agent": "longhaul",
        ...(place.kind === "github" ? { "x-github-api-version": "2022-11-28" } : {}),
        ...(token === undefined ? {} : { authorization: `Bearer ${token.slice(token.indexOf(":") + 1)}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new ForgeRefusal(0, unanswered(place.api, error), isNetworkTrouble(error));
  }
  if (response.ok)
    return await readJson(response).catch((error: unknown) => {
      signal.throwIfAborted();
      throw new ForgeRefusal(502, `${place.api} did not answer in JSON: ${innermostReason(error)}`);
    });
  const text = await readText(response).catch(() => "");
  throw new ForgeRefusal(response.status, `${place.api} answered ${response.status}: ${wordsOf(text)}`);
}

function wordsOf(text: string): string {
  try {
    const { message, errors, error } = JSON.parse(text) as Record<string, unknown>;
    return serverWords(JSON.stringify([message ?? error, errors].filter((part) => part !== undefined)));
  } catch {
    return serverWords(text);
  }
}
