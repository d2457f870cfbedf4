/** One request to a forge's API: its credential, its limits, where a renamed repository is now, and which failures may pass. */
import type { ForgePlace } from "../config/git-settings.ts";
import { innermostReason, isNetworkTrouble, passes } from "../contract/errors.ts";
import { bodyText, type Bounds, readJsonText } from "../process/bounded-body.ts";
import { gitFetch, noAnswerReason, serverWords } from "../process/remote-fetch.ts";
import { keepAnswer, keptAnswer, leaveAlone, noteLeft, waitForTurn } from "./credential-memory.ts";

/** The forge refused the request, or gave no usable answer. */
export class ForgeRefusal extends Error {
  override readonly name = "ForgeRefusal";
  /** 0 if there was no answer. */
  readonly status: number;
  /** Whether asking again may help. */
  readonly isPassing: boolean;
  /** How long the forge wants to be left alone before; at most what an attempt may wait. */
  readonly retryAfterMs: number | undefined;
  /** The same, as the forge said it. */
  readonly limitMs: number | undefined;
  /** Where it says that the repository is now, on this forge's own API. */
  readonly movedTo: string | undefined;

  constructor(
    status: number,
    message: string,
    facts: {
      readonly isPassing?: boolean;
      readonly retryAfterMs?: number | undefined;
      readonly limitMs?: number | undefined;
      readonly movedTo?: string | undefined;
    } = {},
  ) {
    super(message);
    this.status = status;
    this.isPassing = facts.isPassing ?? (facts.retryAfterMs !== undefined || passes.http(status));
    this.retryAfterMs = facts.retryAfterMs;
    this.limitMs = facts.limitMs ?? facts.retryAfterMs;
    this.movedTo = facts.movedTo;
  }
}

const TIMEOUT_MS = 30_000;
const MOVED: ReadonlySet<number> = new Set([301, 302, 307, 308]);
/** Renamed, and transferred, and renamed again. Chosen. */
const MAX_MOVES = 3;

export interface ForgeCall {
  readonly forge: ForgePlace;
  /** Of `user:token`, only the token is sent. */
  readonly token: string | undefined;
  readonly signal: AbortSignal;
  /** It is only to see whether something has changed: it leaves half of the requests for what has to be written. */
  readonly isLook?: boolean;
}

/**
 * A redirect is not followed: the token would go where the answer says, and a changed method would do something else.
 * @param path below the API's address
 * @returns the answer's JSON. @throws ForgeRefusal
 */
export async function askForge(
  call: ForgeCall,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const { forge, signal } = call;
  const request = { ...call, path };
  const former = method === "GET" ? keptAnswer(request) : undefined;
  const response = await send(call, method, path, { body, etag: former?.etag });
  try {
    // Nothing has changed since. GitHub does not count such an answer.
    if (response.status === 304 && former !== undefined) return readJsonText(former.text);
    if (!response.ok) throw await refusalOf(call, path, response);
    // Nothing else is said: it is done.
    if (response.status === 204) return undefined;
    const text = await bodyText(response);
    const answer = readJsonText(text);
    if (method === "GET") keepAnswer(request, response.headers.get("etag"), text);
    return answer;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof ForgeRefusal) throw error;
    throw new ForgeRefusal(502, `${forge.api} did not answer in JSON: ${innermostReason(error)}`);
  }
}

async function refusalOf(call: ForgeCall, path: string, response: Response): Promise<ForgeRefusal> {
  const { forge } = call;
  const { status, headers } = response;
  const text = await bodyText(response).catch(() => "");
  if (MOVED.has(status)) return moved(forge, path, response);
  const limit = limitIn(status, headers, Date.now()) ?? secondaryLimit(status, text);
  if (limit !== undefined) leaveAlone({ ...call, path }, limit.limitMs);
  return new ForgeRefusal(status, `${forge.api} answered ${status}: ${wordsOf(text)}`, limit);
}

/** A log's link is valid for a minute, so one that is over is asked for again. Source: docs.github.com/rest/actions/workflow-jobs. */
const MAX_LINKS = 2;
/** A log of more bytes is not read to its end. Chosen; what is kept of it is less. */
const MAX_TEXT_BYTES = 256 << 20;

/**
 * A text, such as a log. Where the forge refers to another server for it, that one gets neither the token nor anything else.
 * @param read what is made of the body. @throws ForgeRefusal
 */
export async function askText<T>(
  call: ForgeCall,
  path: string,
  read: (pieces: AsyncIterable<Uint8Array>) => Promise<T>,
): Promise<T> {
  const bounds = { maxBytes: MAX_TEXT_BYTES };
  for (let links = 1; ; links += 1) {
    let response = await send(call, "GET", path, { bounds });
    const link = linkIn(call.forge, path, response);
    if (link !== undefined) {
      await response.body?.cancel();
      response = await fetched(call, link, { headers: { "user-agent": "longhaul" }, bounds });
      const isOver = response.status === 401 || response.status === 403 || response.status === 404;
      if (isOver && links < MAX_LINKS) {
        await response.body?.cancel();
        continue;
      }
    }
    if (!response.ok) throw await refusalOf(call, path, response);
    try {
      return await read((response.body ?? []) as AsyncIterable<Uint8Array>);
    } catch (error) {
      call.signal.throwIfAborted();
      throw new ForgeRefusal(502, `${call.forge.api} did not answer to the end: ${innermostReason(error)}`);
    }
  }
}

/** Where a text is, if it is not on the forge's API itself. Never less protected than the API. */
function linkIn({ api }: ForgePlace, path: string, { status, headers }: Response): string | undefined {
  if (!MOVED.has(status)) return undefined;
  const to = URL.parse(headers.get("location") ?? "", `${api}${path}`);
  if (to === null || (to.protocol !== "https:" && to.protocol !== new URL(api).protocol)) return undefined;
  return /^https?:$/.test(to.protocol) ? to.href : undefined;
}

/**
 * Asks at another path of the same API if the forge says that what is asked for is there now. Only for requests that change nothing.
 * @throws ForgeRefusal
 */
export async function askWhereMoved(call: ForgeCall, path: string): Promise<unknown> {
  let at = path;
  for (let moves = 0; ; moves += 1) {
    try {
      return await askForge(call, "GET", at);
    } catch (error) {
      if (!(error instanceof ForgeRefusal) || error.movedTo === undefined || moves === MAX_MOVES) throw error;
      at = error.movedTo;
    }
  }
}

/** @throws ForgeRefusal, without asking, if the forge wants to be left alone */
async function send(
  call: ForgeCall,
  method: string,
  path: string,
  {
    body,
    bounds,
    etag,
  }: { readonly body?: object | undefined; readonly bounds?: Bounds; readonly etag?: string | undefined },
): Promise<Response> {
  const { forge, token } = call;
  const request = { ...call, path };
  const limitMs = waitForTurn(request, Date.now());
  if (limitMs !== undefined) {
    const why = `${forge.api} is not asked for ${Math.ceil(limitMs / 1_000)} s, as its limit for this credential says`;
    throw new ForgeRefusal(429, why, { retryAfterMs: Math.min(MAX_PAUSE_MS, limitMs), limitMs });
  }
  const response = await fetched(call, `${forge.api}${path}`, {
    method,
    headers: {
      accept: forge.kind === "github" ? "application/vnd.github+json" : "application/json, text/plain",
      "user-agent": "longhaul",
      ...(forge.kind === "github" ? { "x-github-api-version": "2022-11-28" } : {}),
      ...(token === undefined ? {} : { authorization: `Bearer ${token.slice(token.indexOf(":") + 1)}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(etag === undefined ? {} : { "if-none-match": etag }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
    bounds,
  });
  noteLeft(request, response.headers);
  return response;
}

async function fetched(
  { forge, signal }: ForgeCall,
  url: string,
  init: Parameters<typeof gitFetch>[1],
): Promise<Response> {
  try {
    return await gitFetch(url, {
      ...init,
      redirect: "manual",
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new ForgeRefusal(0, noAnswerReason(forge.api, error), { isPassing: isNetworkTrouble(error) });
  }
}

/** Only a place below the same API's address is told: no other server, and no other part of this one, may get the token. */
function moved({ api }: ForgePlace, path: string, { status, headers }: Response): ForgeRefusal {
  const to = URL.parse(headers.get("location") ?? "", `${api}${path}`);
  const base = new URL(api);
  const root = base.pathname.replace(/\/$/, "");
  const isOwn = to?.origin === base.origin && to.pathname.startsWith(`${root}/`);
  const movedTo = isOwn ? `${to.pathname.slice(root.length)}${to.search}` : undefined;
  const where = to === null ? "" : ` to ${serverWords(`${to.origin}${to.pathname}`)}`;
  return new ForgeRefusal(
    status,
    `${api} answered ${status}: it refers${where}. If the repository was renamed, start with its new address`,
    { movedTo },
  );
}

function wordsOf(text: string): string {
  try {
    const { message, errors, error } = JSON.parse(text) as Record<string, unknown>;
    return serverWords(JSON.stringify([message ?? error, errors].filter((part) => part !== undefined)));
  } catch {
    return serverWords(text);
  }
}

/** No longer than this between two attempts. Chosen: five of them outlast GitHub's window of an hour. */
const MAX_PAUSE_MS = 15 * 60_000;
/** A second more: the forge's clock and ours differ, and it counts in whole seconds. */
const SPARE_MS = 1_000;

/** Nothing that a forge says is believed to last longer. Chosen. */
const MAX_LIMIT_MS = 24 * 3_600_000;
/** Where a limit says no time. Source: docs.github.com/rest, rate limits: "wait for at least one minute". */
const UNTOLD_LIMIT_MS = 60_000;

/** A pause that a refused request must make. */
interface ForgeLimit {
  readonly retryAfterMs: number;
  readonly limitMs: number;
}

const forgeLimit = (pauseMs: number): ForgeLimit => {
  const limitMs = Math.min(MAX_LIMIT_MS, Math.max(0, pauseMs) + SPARE_MS);
  return { retryAfterMs: Math.min(MAX_PAUSE_MS, limitMs), limitMs };
};

/** GitHub's limits of another kind, which it may tell in words alone. */
const secondaryLimit = (status: number, text: string): ForgeLimit | undefined =>
  status === 403 && /secondary rate limit|abuse detection/i.test(text)
    ? forgeLimit(UNTOLD_LIMIT_MS)
    : undefined;

/**
 * Whether a refusal is a limit that passes, and when. A 403 is one only if it says so; else it is about rights.
 * Source: docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api and docs.gitlab.com/administration/settings/user_and_ip_rate_limits.
 * Gitea and Forgejo have no limits of their own; a proxy may.
 * @param nowMs the wall clock, for times given as a date
 */
export function limitIn(status: number, headers: Headers, nowMs: number): ForgeLimit | undefined {
  if (status !== 403 && status !== 429 && status !== 503) return undefined;
  const pauseMs = pauseIn(headers.get("retry-after"), nowMs) ?? untilReset(headers, nowMs);
  return pauseMs === undefined ? undefined : forgeLimit(pauseMs);
}

/** Seconds, or a date. Source: RFC 9110, 10.2.3. */
function pauseIn(value: string | null, nowMs: number): number | undefined {
  const text = value?.trim() ?? "";
  if (/^\d+$/.test(text)) return Number(text) * 1_000;
  const at = text === "" ? Number.NaN : Date.parse(text);
  return Number.isNaN(at) ? undefined : at - nowMs;
}

/** GitHub's names, and GitLab's. */
const KINDS = ["x-ratelimit", "ratelimit"] as const;

function untilReset(headers: Headers, nowMs: number): number | undefined {
  for (const kind of KINDS) {
    const reset = headers.get(`${kind}-reset`)?.trim() ?? "";
    if (headers.get(`${kind}-remaining`)?.trim() === "0" && /^\d+$/.test(reset))
      return Number(reset) * 1_000 - nowMs;
  }
  return undefined;
}

/** GitHub's and GitLab's most. Source: docs.github.com/rest/using-the-rest-api/using-pagination-in-the-rest-api. */
const PER_PAGE = 100;
/** Chosen: 1,000 rows of anything about one pull request are read. */
const MAX_PAGES = 10;

/**
 * A list as a whole, of a forge that fills each page but the last.
 * @param listIn where an answer has its list. @throws ForgeRefusal
 */
export async function askPages(
  call: ForgeCall,
  path: string,
  listIn: (answer: unknown) => unknown = (answer) => answer,
): Promise<readonly unknown[]> {
  const rows: unknown[] = [];
  for (let page = 1; page <= MAX_PAGES; page += 1) {
    const mark = path.includes("?") ? "&" : "?";
    const list = listIn(await askForge(call, "GET", `${path}${mark}per_page=${PER_PAGE}&page=${page}`));
    if (!Array.isArray(list))
      throw new ForgeRefusal(502, `${call.forge.api} did not answer with a list at ${path}`);
    rows.push(...(list as unknown[]));
    if (list.length < PER_PAGE) break;
  }
  return rows;
}
