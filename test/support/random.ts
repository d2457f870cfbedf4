/** Chance that can be played again: the same seed, the same choices. */
export interface Random {
  /** 0 ≤ value < 1. */
  next(): number;
  /** A whole number, 0 ≤ value < below. */
  below(below: number): number;
  /** From `from` to `to`, both included. */
  between(from: number, to: number): number;
  /** @throws RangeError on an empty list */
  pick<T>(list: readonly T[]): T;
  chance(probability: number): boolean;
}

/** mulberry32: small, fast and good enough for choosing faults. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    next,
    below,
    between: (from, to) => from + below(to - from + 1),
    pick(list) {
      const chosen = list[below(list.length)];
      if (chosen === undefined) throw new RangeError("Nothing to choose from.");
      return chosen;
    },
    chance: (probability) => next() < probability,
  };
}
