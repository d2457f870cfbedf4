/** How long a provider asks to wait: by its headers, its error's fields, or its words, which name a length of time or a moment. */

/** Longest wait for the end of a limit. Chosen: the longest limits of subscriptions are weekly. */
export const MAX_LIMIT_MS = 7 * 86_400_000;
/** Longest wait that is honoured for other failures, whose end a provider only guesses. */
export const MAX_RETRY_AFTER_MS = 600_000;

export interface WaitFacts {
  /** Names in lower case. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** The provider's sentence. */
  readonly text?: string;
  /** Fields of the error that say when to try again, such as `retryDelay: 12s`. */
  readonly fields?: string | undefined;
  /** Texts and the limits' resets count only then: other failures mention waiting in passing. */
  readonly isRateLimit?: boolean;
}

/**
 * Milliseconds to wait, at most a week for a limit and ten minutes for another failure; undefined if the provider names no time.
 * The retry header comes first, then the error's fields, then the sentence, then the limits' resets.
 */
export function retryAfterMs(facts: WaitFacts, now: number): number | undefined {
  const { headers = {}, text = "", fields = "", isRateLimit } = facts;
  const waitMs =
    ofHeader(headers, now) ??
    (isRateLimit ? (hintMs(fields, now) ?? hintMs(text, now) ?? ofResets(headers, now)) : undefined);
  if (waitMs === undefined) return undefined;
  return Math.max(0, Math.min(isRateLimit ? MAX_LIMIT_MS : MAX_RETRY_AFTER_MS, Math.round(waitMs)));
}

/** Whether the provider's words say when it will answer again. */
export function namesEnd({ text = "", fields = "" }: Pick<WaitFacts, "text" | "fields">): boolean {
  // Seen from 1970, no time that is named has passed.
  return (hintMs(fields, 0) ?? hintMs(text, 0)) !== undefined;
}

function ofHeader(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const exact = number(headers["retry-after-ms"]);
  if (exact !== undefined) return exact;
  const text = headers["retry-after"];
  return text === undefined ? undefined : resetMs(text, now);
}

/** `x-ratelimit-reset-tokens`, `anthropic-ratelimit-unified-5h-reset`, `x-rate-limit-reset`, `ratelimit-reset`. */
const RESET = /^(?:x-|anthropic-)?rate-?limit-(?:.*-)?reset(?:-|$)/;

/**
 * OpenAI, Azure and Groq: `x-ratelimit-reset-tokens: 6m0s`; Anthropic: `anthropic-ratelimit-tokens-reset`, a date, and of
 * subscriptions `-unified-5h-reset`, seconds since 1970, with `-unified-5h-status`; OpenRouter: `x-ratelimit-reset`, a time. The
 * wait is that of the limits that are used up; if none is known to be, of the limit that is reset first.
 */
function ofResets(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const limits = Object.entries(headers).flatMap(([name, value]) => {
    const ms = RESET.test(name) ? resetMs(value, now) : undefined;
    const about = (what: string) => headers[name.replace("reset", what)];
    const isUsedUp = number(about("remaining")) === 0 || about("status") === "rejected";
    return ms === undefined ? [] : [{ ms, isUsedUp }];
  });
  const usedUp = limits.filter((limit) => limit.isUsedUp);
  if (usedUp.length > 0) return Math.max(...usedUp.map((limit) => limit.ms));
  return limits.length === 0 ? undefined : Math.min(...limits.map((limit) => limit.ms));
}

/** Of a header: seconds, seconds or milliseconds since 1970, a length of time, or a date. */
function resetMs(text: string, now: number): number | undefined {
  const value = text.trim();
  const seconds = number(value);
  if (seconds !== undefined) return epochMs(value, now) ?? seconds * 1_000;
  const date = Date.parse(/^\d{4}-\d\d-\d\d[T ][\d:.]+$/.test(value) ? `${value}Z` : value);
  return durationMs(value) ?? (Number.isNaN(date) ? undefined : date - now);
}

function number(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined;
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const DAY_MS = 86_400_000;
const UNIT =
  "(ms|milli(?:second)?s?|s(?:ec(?:ond)?s?)?|m(?:in(?:ute)?s?)?|h(?:(?:ou)?rs?)?|d(?:ays?)?|w(?:eeks?)?)(?![a-z])";
const PART = `(?:(\\d+(?:\\.\\d+)?)\\s*|(?:an?|one)\\s+)${UNIT}`;
const DURATION = new RegExp(`^${PART}(?:(?:,?\\s*and\\s+|,?\\s*)${PART})*`, "i");
const ONE_PART = new RegExp(PART, "gi");
/** Of ISO 8601: `PT1H30M`. */
const ISO_DURATION = /^P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?(?![a-z0-9])/i;

/** `6m0s`, `41.9s`, `28ms`, `7 seconds`, `1 hour, 5 minutes`, `PT30M` at the text's beginning; undefined for anything else. */
function durationMs(text: string): number | undefined {
  const iso = ISO_DURATION.exec(text);
  if (iso && iso[0].length > 2) {
    const [days = 0, hours = 0, minutes = 0, seconds = 0] = iso.slice(1).map((part) => Number(part ?? 0));
    return days * DAY_MS + hours * 3_600_000 + minutes * 60_000 + seconds * 1_000;
  }
  const duration = DURATION.exec(text)?.[0];
  if (duration === undefined) return undefined;
  return [...duration.toLowerCase().matchAll(ONE_PART)].reduce(
    (sum, [, amount = "1", unit = ""]) => sum + Number(amount) * unitMs(unit),
    0,
  );
}

function unitMs(unit: string): number {
  if (unit.startsWith("ms") || unit.startsWith("milli")) return 1;
  return unit.startsWith("w") ? 7 * DAY_MS : (UNIT_MS[unit.charAt(0)] ?? 0);
}

/** What comes before a time that is meant as the end of a limit, in English and Chinese. */
const CUES =
  /retry[-_ ]?(?:after|delay|in|at)|retry|try(?:ing)? (?:(?:your request|it) )?again|resets?|resetting|refresh(?:es|ed)?|refills?|renew(?:s|ed)?|replenish(?:es|ed)?|available|wait(?:ing)?|until|resumes?|lift(?:s|ed)?|restored|come back|unlocks?|limit reached(?=\|)|将[在于]|请[在于]|等待|稍等/gi;
const FILLER =
  /^(?:[\s"'`:=|,;∙·•*_[(-]|(?:is|are|will|be|at|on|in|after|for|until|by|from|about|around|approximately|approx\.?|another|the|your|again|available|resets?|limit|time|at least|more than|~)(?![a-z]))*/i;
/** A time stands close behind its cue. */
const REACH = 90;

/**
 * @param text a provider's sentence, or the fields of its error as `name: value`
 * @returns milliseconds from `now`; 0 for a moment that has just passed; undefined if the text names no time that can be read
 */
export function hintMs(text: string, now: number): number | undefined {
  const latinText = inLatin(text);
  for (const cue of latinText.matchAll(CUES)) {
    const behind = latinText.slice(cue.index + cue[0].length, cue.index + cue[0].length + REACH);
    const filler = FILLER.exec(behind)?.[0] ?? "";
    const waitMs = timeMs(behind.slice(filler.length), cue[0] + filler, { text: latinText, now });
    if (waitMs !== undefined) return waitMs;
  }
  return undefined;
}

const CHINESE = [
  [/毫秒/g, " ms "],
  [/秒钟?/g, " s "],
  [/分钟|分(?!\p{L})/gu, " m "],
  [/(?:个)?小时/g, " h "],
  [/天/g, " d "],
] as const;

const inLatin = (text: string): string =>
  CHINESE.reduce((replaced, [pattern, unit]) => replaced.replace(pattern, unit), text).replaceAll("：", ":");

interface Said {
  readonly text: string;
  readonly now: number;
}

function timeMs(text: string, before: string, source: Said): number | undefined {
  const isLength = /\b(?:in|after|for|wait|delay)\W*$/i.test(before) || /_(?:in|after|for)\W/i.test(before);
  const [, hours, minutes, rest = "0"] =
    (isLength && /^(\d{1,3}):(\d\d)(?::(\d\d))?(?![\d:])/.exec(text)) || [];
  if (hours !== undefined) return Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(rest) * 1_000;
  const named = fieldMs(text, before);
  return named ?? durationMs(text) ?? epochMs(text, source.now) ?? momentMs(text, source);
}

/** `retry_after: 45`, `resets_in_seconds: 5400`, `retry-after-ms: 200`: a number without a unit is of seconds, in a field that says so. */
function fieldMs(text: string, before: string): number | undefined {
  const unit =
    /^(seconds?|secs?|s|ms|millis(?:econds)?|minutes?|mins?)["']?\W+(\d+(?:\.\d+)?)(?![\d.:]|[-/]\d| ?[a-z])/i.exec(
      text,
    );
  if (unit) return Number(unit[2]) * unitMs((unit[1] ?? "s").toLowerCase());
  const [, bare] = /^(\d{1,9}(?:\.\d+)?)(?=$|["'}\],;.]|\s*$)(?!\.\d)/.exec(text) ?? [];
  return bare !== undefined && /(?:retry[-_ ]?after|delay|_(?:in|after)|reset)["'\s:=]*$/i.test(before)
    ? Number(bare) * 1_000
    : undefined;
}

/** Seconds or milliseconds since 1970. */
function epochMs(text: string, now: number): number | undefined {
  const [, digits] = /^(\d{10}(?:\.\d+)?|\d{13})(?![\d.]*\d)/.exec(text) ?? [];
  if (digits === undefined) return undefined;
  return Math.max(0, (digits.length === 13 ? Number(digits) : Number(digits) * 1_000) - now);
}

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const WEEKDAY = "(?:(sun|mon|tue|wed|thu|fri|sat)[a-z]*\\.?,? *)?";
const MONTH = `(${MONTHS.join("|")})[a-z]*\\.?`;
const DATES = [
  /^(?<year>\d{4})[-/.](?<month>\d{1,2})[-/.](?<day>\d{1,2})(?!\d)/i,
  new RegExp(
    `^${WEEKDAY.replace("(sun", "(?<weekday>sun")}${MONTH.replace("(", "(?<name>")} (?<day>\\d{1,2})(?:st|nd|rd|th)?(?!\\d|:)(?:,? (?<year>\\d{4}))?`,
    "i",
  ),
  new RegExp(
    `^${WEEKDAY.replace("(sun", "(?<weekday>sun")}(?<day>\\d{1,2})(?:st|nd|rd|th)?[ -]${MONTH.replace("(", "(?<name>")}(?:,?[ -](?<year>\\d{4}))?`,
    "i",
  ),
  /^(?<weekday>sun|mon|tue|wed|thu|fri|sat)[a-z]*/i,
  /^(?<relative>today|tomorrow|tonight)/i,
];
const CLOCK =
  /^(?:(?<word>midnight|noon)|(?<hour>\d{1,2})(?::(?<minute>\d\d)(?::(?<second>\d\d)(?:[.,]\d+)?)?)? ?(?<half>[ap]\.?m\b\.?)?)/i;
const ZONE =
  /^ ?\(?(?<zone>(?:UTC|GMT)? ?[+-]\d{1,2}(?::?\d\d)?|Z|UTC|GMT|[A-Z][A-Za-z_]+(?:\/[A-Za-z_+0-9-]+)+|[A-Z]{2,4}T|Beijing time|Pacific(?: time)?|Eastern(?: time)?|Central(?: time)?)(?![a-z])/i;

/** A moment: a date, a time of the day, or both, with a zone or without. */
function momentMs(text: string, source: Said): number | undefined {
  const date = DATES.map((pattern) => pattern.exec(text)).find((match) => match !== null) ?? undefined;
  const behind = text.slice(date?.[0].length ?? 0).replace(/^(?:[T,\s]|at\b|by\b)+/i, "");
  const clock = CLOCK.exec(behind) ?? undefined;
  const { hour, minute, half, word } = clock?.groups ?? {};
  const isClock = word !== undefined || minute !== undefined || (hour !== undefined && half !== undefined);
  if (date === undefined && !isClock) return undefined;
  const zone = ZONE.exec(isClock ? behind.slice(clock?.[0].length ?? 0) : behind)?.groups?.["zone"];
  const parts = { date: date?.groups ?? {}, clock: isClock ? (clock?.groups ?? {}) : {} };
  const zones = zone === undefined ? likelyZones(source.text) : [offsetOf(zone)];
  const waitsMs = zones.flatMap((offset) => nextMoment(parts, offset, source.now) ?? []);
  if (zone !== undefined || date === undefined) return waitsMs[0];
  // A window of so many hours ends within them: a reading that is later, or over, has the wrong zone.
  const windowMs = windowOf(source.text);
  const fits = waitsMs.filter((ms) => ms > 0 && ms <= windowMs);
  return fits[0] ?? waitsMs.find((ms) => ms > 0);
}

const PAST_MS = 10 * 60_000;

type Groups = Readonly<Record<string, string | undefined>>;
type OffsetAt = (utcMs: number) => number;

function nextMoment(
  { date, clock }: { readonly date: Groups; readonly clock: Groups },
  offset: OffsetAt,
  now: number,
): number | undefined {
  const today = new Date(now + offset(now));
  const year = date["year"] === undefined ? today.getUTCFullYear() : Number(date["year"]);
  const month = monthOf(date) ?? today.getUTCMonth();
  const weekday = date["day"] === undefined ? date["weekday"] : undefined;
  const ahead =
    weekday === undefined
      ? Number(date["relative"]?.toLowerCase() === "tomorrow")
      : (DAYS.indexOf(weekday.toLowerCase()) - today.getUTCDay() + 7) % 7;
  const day = date["day"] === undefined ? today.getUTCDate() + ahead : Number(date["day"]);
  const time = timeOfDay(clock);
  if (time === undefined || month > 11 || month < 0 || day < 1 || day > 62) return undefined;
  const at = (extraDays: number, extraYears = 0) => {
    const local = Date.UTC(year + extraYears, month, day + extraDays) + time;
    return local - offset(local - offset(local)) - now;
  };
  const first = at(0);
  if (date["day"] !== undefined)
    return first < -DAY_MS && date["year"] === undefined ? at(0, 1) : justPassed(first);
  if (first >= -PAST_MS) return Math.max(0, first);
  return at(weekday === undefined ? 1 : 7);
}

const justPassed = (ms: number): number | undefined => (ms < -PAST_MS ? undefined : Math.max(0, ms));

function monthOf({ name, month }: Groups): number | undefined {
  if (name !== undefined) return MONTHS.indexOf(name.toLowerCase());
  return month === undefined ? undefined : Number(month) - 1;
}

function timeOfDay({ hour = "0", minute = "0", second = "0", half, word }: Groups): number | undefined {
  if (word !== undefined) return word.toLowerCase() === "noon" ? 43_200_000 : 0;
  const hours = half === undefined ? Number(hour) : (Number(hour) % 12) + (/^p/i.test(half) ? 12 : 0);
  if (hours > 24 || Number(minute) > 59 || Number(second) > 60) return undefined;
  return ((hours * 60 + Number(minute)) * 60 + Number(second)) * 1_000;
}

const HOURS: Readonly<Record<string, number>> = {
  EST: -5,
  EDT: -4,
  CST: -6,
  CDT: -5,
  MST: -7,
  MDT: -6,
  PST: -8,
  PDT: -7,
  CET: 1,
  CEST: 2,
  BST: 1,
  WET: 0,
  WEST: 1,
  EET: 2,
  EEST: 3,
  MSK: 3,
  IST: 5.5,
  JST: 9,
  KST: 9,
  HKT: 8,
  SGT: 8,
  AEST: 10,
  AEDT: 11,
};
const NAMED: Readonly<Record<string, string>> = {
  PT: "America/Los_Angeles",
  ET: "America/New_York",
  CT: "America/Chicago",
  MT: "America/Denver",
  PACIFIC: "America/Los_Angeles",
  EASTERN: "America/New_York",
  CENTRAL: "America/Chicago",
  BEIJING: "Asia/Shanghai",
};

/** An unknown zone is UTC. */
function offsetOf(zone: string): OffsetAt {
  const name = zone
    .trim()
    .toUpperCase()
    .replace(/ TIME$/, "");
  const [, sign, hours, minutes = "0"] = /^(?:UTC|GMT)? ?([+-])(\d{1,2}):?(\d\d)?$/.exec(name) ?? [];
  const fixed =
    hours === undefined
      ? (HOURS[name] ?? 0) * 60
      : (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -1 : 1);
  const region = NAMED[name] ?? (zone.includes("/") ? zone.trim() : undefined);
  return (region === undefined ? undefined : offsetIn(region)) ?? (() => fixed * 60_000);
}

function offsetIn(timeZone: string): OffsetAt | undefined {
  try {
    const format = new Intl.DateTimeFormat("en-US", { timeZone, timeZoneName: "longOffset" });
    return (utcMs) => {
      const name = format.formatToParts(utcMs).find(({ type }) => type === "timeZoneName")?.value ?? "";
      const [, sign, hours = "0", minutes = "0"] = /([+-])(\d\d):(\d\d)/.exec(name) ?? [];
      return (Number(hours) * 60 + Number(minutes)) * (sign === "-" ? -60_000 : 60_000);
    };
  } catch {
    return undefined;
  }
}

/** Without a zone, times are UTC; those of services in China are Beijing's, also in English (Z.ai). */
function likelyZones(text: string): OffsetAt[] {
  const utc: OffsetAt = () => 0;
  const beijing: OffsetAt = () => 8 * 3_600_000;
  return /\p{Script=Han}/u.test(text) ? [beijing, utc] : [utc, beijing];
}

function windowOf(text: string): number {
  const [, hours] = /(\d{1,3})[ -]*h(?:ours?)?(?![a-z])/i.exec(text) ?? [];
  return hours === undefined ? Infinity : Number(hours) * 3_600_000;
}
