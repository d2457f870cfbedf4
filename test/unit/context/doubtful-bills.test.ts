/** When a provider's token counts are implausible [S11]. */
import { describe, expect, it } from "vitest";
import { areDoubtful, isSuspicious } from "../../../activities/transcript/size.ts";

/** Newest first, as pairs of estimated and billed tokens. */
const calls = (...pairs: readonly (readonly [number, number])[]) =>
  pairs.map(([estimated, actual]) => ({ estimated, actual }));

describe("bills over several calls", () => {
  it("are doubtful if they stay constant while the session grows: a server that cuts", () => {
    expect(areDoubtful(calls([4_600, 4_096], [4_700, 4_096], [4_500, 4_090], [4_400, 4_096]))).toBe(true);
  });

  it("are doubtful if each contradicts our count by far", () => {
    const tenfold = calls([30_000, 300_000], [20_000, 200_000], [10_000, 100_000], [5_000, 50_000]);
    expect(areDoubtful(tenfold)).toBe(true);
    expect(areDoubtful([...tenfold.slice(0, 3), { estimated: 5_000, actual: 5_100 }])).toBe(false);
  });

  it("are believed if they grow, even if below our count, and if they are few", () => {
    expect(areDoubtful(calls([13_000, 12_400], [12_000, 11_500], [11_000, 10_600], [10_000, 9_800]))).toBe(
      false,
    );
    expect(areDoubtful(calls([4_600, 4_096], [4_700, 4_096], [4_500, 4_090]))).toBe(false);
  });

  it("are believed if little was added, and if the session shrank between them", () => {
    expect(areDoubtful(calls([5_040, 5_001], [5_030, 5_000], [5_020, 5_000], [5_010, 5_000]))).toBe(false);
    expect(areDoubtful(calls([9_000, 8_900], [6_000, 5_900], [30_000, 29_000], [28_000, 27_500]))).toBe(
      false,
    );
  });

  it("are examined only if the newest is suspicious", () => {
    expect(isSuspicious({ estimated: 10_000, actual: 9_900 }, 10_000)).toBe(false);
    expect(isSuspicious({ estimated: 4_600, actual: 4_096 }, 9_000)).toBe(true);
    expect(isSuspicious({ estimated: 10_000, actual: 60_000 }, 10_000)).toBe(true);
  });
});
