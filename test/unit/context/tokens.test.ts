import { encode } from "gpt-tokenizer/encoding/o200k_base";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Message } from "../../../activities/contract/message.ts";
import {
  estimatedNextInput,
  estimateMessage,
  estimateTools,
  learnRatio,
} from "../../../activities/contract/request-size.ts";
import { estimateText } from "../../../activities/text/tokens.ts";
import { calls, result, user } from "../../support/rows.ts";
import { samples } from "./samples.ts";

/** Bounds on |estimate / actual − 1|. Source: requirement 9, pure estimate. */
const bounds: Record<keyof typeof samples, number> = {
  prose: 0.05,
  typescript: 0.05,
  json: 0.1,
  hashes: 0.2,
  toolOutput: 0.2,
  chinese: 0.05,
  japanese: 0.1,
  russian: 0.1,
};

describe("estimateText", () => {
  for (const [kind, bound] of Object.entries(bounds)) {
    it(`stays within ${bound * 100} % of a real tokenizer on ${kind}`, { tags: ["case-18"] }, () => {
      const text = samples[kind as keyof typeof samples];
      expect(Math.abs(estimateText(text) / encode(text).length - 1)).toBeLessThanOrEqual(bound);
    });
  }

  it("counts nothing as 0 and anything as at least 1", () => {
    expect(estimateText("")).toBe(0);
    fc.assert(fc.property(fc.string({ minLength: 1, unit: "binary" }), (text) => estimateText(text) >= 1));
  });

  it("is never far below a real count, whatever the text", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 40, maxLength: 200, unit: "grapheme-ascii" }), (text) => {
        expect(estimateText(text)).toBeGreaterThan(encode(text).length * 0.45);
      }),
    );
  });

  it("ends in linear time on the worst texts", () => {
    const before = performance.now();
    for (const text of ["a", "=", " ", "\n", "9", "漢", "😀", "aB"]) estimateText(text.repeat(200_000));
    // A quadratic walk would take minutes; a second is ample for 2 million characters.
    expect(performance.now() - before).toBeLessThan(5_000);
  });
});

describe("estimateMessage", () => {
  it("counts pictures and PDFs by the rule of the model that sees them, wherever they are", () => {
    const picture = {
      type: "file",
      mediaType: "image/png",
      data: "@blob:0",
      width: 1_024,
      height: 1_024,
    } as const;
    const pdf = { type: "file", mediaType: "application/pdf", data: "@blob:1", pages: 2 } as const;
    const claude = { model: "anthropic/claude-haiku-4-5", input: ["image" as const, "pdf" as const] };
    const message: Message = { role: "user", content: [picture, pdf] };
    const empty = estimateMessage(user(""));
    expect(estimateMessage(message, claude) - empty).toBe(1_399 + 2 * 2_300);
    const answer = result("a", "") as Extract<Message, { role: "tool" }>;
    const seen: Message = { role: "tool", content: [{ ...answer.content[0], files: [picture] }] };
    expect(estimateMessage(seen, claude) - estimateMessage(answer)).toBe(1_399);
  });

  it("counts a call by its name and arguments", () => {
    const small = estimateMessage(calls("", { id: "a", name: "bash", input: { command: "ls" } }));
    const large = estimateMessage(calls("", { id: "a", name: "bash", input: { command: samples.prose } }));
    expect(large - small).toBeGreaterThan(estimateText(samples.prose) * 0.95);
  });

  it("counts tools by name, description and schema", () => {
    const tool = { name: "bash", description: "Runs a command.", inputSchema: { type: "object" } };
    expect(estimateTools([])).toBe(0);
    expect(estimateTools([tool, tool])).toBe(2 * estimateTools([tool]));
    expect(estimateTools([{ ...tool, description: samples.prose }])).toBeGreaterThan(150);
  });
});

describe("estimatedNextInput", () => {
  const bill = { input: 5_000, output: 200 };
  const pureTokens = 5_400;

  it("is last input + last output if nothing is new", { tags: ["case-18"] }, () => {
    expect(estimatedNextInput({ bill, newTokens: 0, pureTokens })).toEqual({
      tokens: 5_200,
      estimated: false,
    });
  });

  it("adds later messages, and accumulates those of cancelled calls", { tags: ["case-18"] }, () => {
    expect(estimatedNextInput({ bill, newTokens: 100, pureTokens }).tokens).toBe(5_300);
    expect(estimatedNextInput({ bill, newTokens: 250, pureTokens }).tokens).toBe(5_450);
  });

  it("is the pure estimate, labelled as such, if there is no bill", { tags: ["case-18"] }, () => {
    expect(estimatedNextInput({ newTokens: 100, pureTokens })).toEqual({ tokens: 5_400, estimated: true });
  });

  it.each([
    ["zero", { input: 0, output: 0 }],
    ["NaN", { input: Number.NaN, output: 20 }],
    ["negative", { input: 5_000, output: -1 }],
    ["infinite", { input: Infinity, output: 0 }],
    ["a sum over many calls", { input: 900_000, output: 200 }],
    ["a tenth of the request", { input: 300, output: 20 }],
    ["less than a quarter of the request", { input: 1_300, output: 20 }],
    ["ten times the request", { input: 54_000, output: 200 }],
  ])("ignores a bill that is %s", { tags: ["case-18"] }, (_what, strange) => {
    const next = { bill: strange, newTokens: 100, pureTokens, oneRequestTokens: 4 * 128_000 };
    expect(estimatedNextInput(next)).toEqual({ tokens: 5_400, estimated: true });
  });

  it(
    "keeps a bill that is larger than the window, because it must start a compaction",
    { tags: ["case-31"] },
    () => {
      const next = {
        bill: { input: 140_000, output: 10 },
        newTokens: 0,
        pureTokens: 120_000,
        oneRequestTokens: 4 * 128_000,
      };
      expect(estimatedNextInput(next)).toEqual({ tokens: 140_010, estimated: false });
    },
  );

  it("applies the calibration factor to estimates and never to the bill", () => {
    expect(estimatedNextInput({ bill, newTokens: 100, pureTokens, ratio: 1.2 }).tokens).toBe(5_320);
    expect(estimatedNextInput({ newTokens: 0, pureTokens: 1_000, ratio: 1.2 }).tokens).toBe(1_200);
    expect(estimatedNextInput({ newTokens: 0, pureTokens: 1_000, ratio: Number.NaN }).tokens).toBe(1_000);
  });
});

describe("learnRatio", () => {
  it("reaches the true ratio within some calls and stays there", () => {
    let tokenRatio = learnRatio(undefined, 1_000, 1_200);
    for (let call = 0; call < 20; call++) tokenRatio = learnRatio(tokenRatio, 1_000, 1_200);
    expect(tokenRatio.ratio).toBeCloseTo(1.2, 5);
    expect(tokenRatio.samples).toBe(21);
  });

  it("ignores one absurd sample, and unusable ones", () => {
    const before = { ratio: 1, samples: 50 };
    expect(learnRatio(before, 10, 1_000_000).ratio).toBeLessThanOrEqual(1.1);
    expect(learnRatio(before, 1_000, 0)).toEqual(before);
    expect(learnRatio(before, Number.NaN, 1_000)).toEqual(before);
    expect(learnRatio(before, 0, 1_000)).toEqual(before);
  });

  it("learns nothing from bills of another request", () => {
    const before = { ratio: 1, samples: 3 };
    expect(learnRatio(before, 5_000, 50_000)).toEqual(before);
    expect(learnRatio(before, 5_000, 400)).toEqual(before);
  });

  it(
    "learns nothing from a server that cuts requests silently, so that compaction still starts",
    { tags: ["S11"] },
    () => {
      const [window, kept] = [32_000, 4_096];
      let tokenRatio = { ratio: 1, samples: 0 };
      let due = false;
      for (let counted = 1_000; counted < 1.5 * window && !due; counted += 500) {
        const bill = { input: Math.min(counted, kept), output: 100 };
        tokenRatio = learnRatio(tokenRatio, counted, bill.input);
        const next = { bill, newTokens: 400, pureTokens: counted + 500, ratio: tokenRatio.ratio };
        due = estimatedNextInput(next).tokens > 0.8 * window;
      }
      expect(tokenRatio.ratio).toBeGreaterThan(0.7);
      expect(due).toBe(true);
    },
  );

  it("always stays within 0.5 and 2", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.double(), fc.double()), { maxLength: 40 }), (samplesOf) => {
        const { ratio } = samplesOf.reduce((tokenRatio, [e, a]) => learnRatio(tokenRatio, e, a), {
          ratio: 1,
          samples: 0,
        });
        expect(ratio).toBeGreaterThanOrEqual(0.5);
        expect(ratio).toBeLessThanOrEqual(2);
      }),
    );
  });
});
