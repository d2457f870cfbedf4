/** Amounts as people read them: tokens, bytes, time, money, shares and lists. */

/** Two digits at least, such as `3.4k`, `12k`, `128k`, `1.2M`. */
const COMPACT = new Intl.NumberFormat("en-US", { notation: "compact" });
const TENTHS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });
const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0, useGrouping: false });
const CENTS = money(2);
/** So that columns of small amounts line up. */
const FINE = money(4);
const AND = new Intl.ListFormat("en-GB", { type: "conjunction" });
const OR = new Intl.ListFormat("en-GB", { type: "disjunction" });

function money(digits: number): Intl.NumberFormat {
  const fractions = { minimumFractionDigits: digits, maximumFractionDigits: digits };
  return new Intl.NumberFormat("en-US", {
    style: "currency",
    currency: "USD",
    useGrouping: false,
    ...fractions,
  });
}

/** Tokens: `812`, `3.4k`, `128k`, `1.2M`. */
export function tokens(count: number): string {
  return COMPACT.format(Math.round(count)).replace("K", "k");
}

/** A decimal only below ten. */
const short = (value: number): string => (value < 9.95 ? TENTHS : WHOLE).format(value);

export function bytes(count: number): string {
  if (count < 1_024) return `${count} B`;
  if (count < 1_024 * 1_024) return `${short(count / 1_024)} KB`;
  if (count < 1_000 * 1_024 ** 2) return `${short(count / 1_024 ** 2)} MB`;
  return `${short(count / 1_024 ** 3)} GB`;
}

/** `80 ms`, `3.2 s`, `2 min 5 s`, `3 h 4 min`. */
export function duration(ms: number): string {
  if (ms < 100) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${short(ms / 1_000)} s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return twoUnits(Math.floor(seconds / 60), "min", seconds % 60, "s");
  const minutes = Math.round(seconds / 60);
  return twoUnits(Math.floor(minutes / 60), "h", minutes % 60, "min");
}

function twoUnits(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** US dollars: two decimals from one dollar on, else four, so that columns line up. */
export function dollars(amount: number): string {
  if (amount === 0) return "$0";
  if (amount < 0.000_05) return "<$0.0001";
  return (amount >= 1 ? CENTS : FINE).format(amount);
}

/** The same in a sentence, without zeros after the cents. A limit's answer is read again: too large an amount keeps an exponent, which is refused. */
export const usd = (amount: number): string =>
  `$${amount.toFixed(amount >= 1 ? 2 : 4).replace(/(\.\d\d)0+$/, "$1")}`;

export function percent(part: number, whole: number): string {
  if (!(whole > 0)) return "– %";
  return `${Math.round((100 * part) / whole)} %`;
}

/** `12k tokens in (80 % cached), 3k out`; nothing is said of a cache that is not used, or not reported. */
export function usageText(usage: {
  readonly input: number;
  readonly cached: number;
  readonly output: number;
}): string {
  const { input, cached, output } = usage;
  const share = cached > 0 ? ` (${percent(cached, input)} cached)` : "";
  return `${tokens(input)} tokens in${share}, ${tokens(output)} out`;
}

export function plural(count: number, singular: string, many = `${singular}s`): string {
  return `${count} ${count === 1 ? singular : many}`;
}

/** `A, B and C`. */
export const inWords = (names: readonly string[]): string => AND.format(names);

/** `a`, `a or b`, `a, b or c`. */
export const inAlternatives = (names: readonly string[]): string => OR.format(names);
