/** Middle and edge of a list of figures. Pure. */

export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** @param q 0–1; interpolates between neighbours. NaN if there is nothing. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)];
  const high = sorted[Math.ceil(at)];
  if (low === undefined || high === undefined) return Number.NaN;
  return low + (high - low) * (at - Math.floor(at));
}

export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Growth of y for each 1 of x, by least squares. NaN if there are fewer than two points. */
export function slope(points: readonly { readonly x: number; readonly y: number }[]): number {
  const [meanX, meanY] = [mean(points.map(({ x }) => x)), mean(points.map(({ y }) => y))];
  const over = sum(points.map(({ x, y }) => (x - meanX) * (y - meanY)));
  return over / sum(points.map(({ x }) => (x - meanX) ** 2));
}

function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

/** Differences of neighbours: one time fewer than there are points. */
export function gaps(times: readonly number[]): number[] {
  return times.slice(1).map((time, index) => time - (times[index] ?? time));
}
