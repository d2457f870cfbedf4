import { describe, expect, it } from "vitest";
import {
  budgetOptions,
  budgetText,
  parseGrantedAmount,
  raisedLimit,
} from "../../activities/contract/limits.ts";
import { usd } from "../../activities/text/format.ts";
import { readAnswer, type QuestionFacts } from "../../activities/contract/questions.ts";

const cost: QuestionFacts = {
  id: "s3cost",
  kind: "budget",
  text: "",
  options: ["another $0.10", "stop"],
  most: 0.5,
};
const steps: QuestionFacts = { ...cost, id: "s3steps", options: ["another 20 steps", "stop"], most: 30 };
const textOf = (open: QuestionFacts, message: unknown) => {
  const answer = readAnswer([open], message);
  if (!answer.ok) return answer.reason;
  return answer.settlement.how === "answered" ? answer.settlement.text : answer.settlement.how;
};

describe("a question about a limit", () => {
  it("accepts an option by number or text, or an amount in a person's own words", () => {
    expect(textOf(cost, { option: 1 })).toBe("another $0.10");
    expect(textOf(cost, { option: 2 })).toBe("stop");
    expect(textOf(cost, "Stop")).toBe("stop");
    expect(textOf(cost, "$0.25")).toBe("another $0.25");
    expect(textOf(cost, "another $0.5")).toBe("another $0.50");
    expect(textOf(steps, "5 steps")).toBe("another 5 steps");
    expect(textOf(steps, { action: "decline" })).toBe("declined");
  });

  it("accepts nothing beyond the operator's policy, and no text without an amount", () => {
    expect(textOf(cost, "$0.51")).toBe("the operator allows the session at most $0.50 more");
    expect(textOf(steps, "31 steps")).toBe("the operator allows the session at most 30 steps more");
    for (const answer of ["go on", "$-1", "$0", "20 steps", { action: "allow" }, { action: "deny" }])
      expect(readAnswer([cost], answer)).toMatchObject({ ok: false });
    for (const answer of ["$5", "0 steps", "1.5 steps"])
      expect(readAnswer([steps], answer)).toMatchObject({ ok: false });
    const unlimited = { ...cost, most: Infinity };
    for (const answer of ["$0.00001", `$${"9".repeat(400)}`, `$1${"0".repeat(22)}`])
      expect(textOf(unlimited, answer)).toBe("the amount is too small or too large to be given");
    expect(textOf(cost, "2.50")).toContain('2 stop; or give an amount such as "$2.50"');
    expect(textOf(steps, "more")).toContain('an amount such as "20 steps"');
  });

  it("counts only the answers of those who may answer", () => {
    const open: QuestionFacts = { ...cost, id: "s3budget", answerers: ["ann", "boss"] };
    expect(textOf(open, { option: 1, by: "boss" })).toBe("another $0.10");
    expect(textOf(open, { text: "$0.20", by: "  ann " })).toBe("another $0.20");
    for (const by of ["bob", "Ann", "ann, boss"])
      expect(textOf(open, { option: 1, by })).toBe(
        `only ann or boss may answer s3budget, and the answer is from ${by}`,
      );
    for (const message of ["stop", { option: 1 }, { action: "decline" }, { option: 2, by: " " }])
      expect(textOf(open, message)).toMatch(/the answer does not say whose it is \(by\)$/);
  });

  it("offers the same amount again within the policy, and is not asked if that allows none", () => {
    expect(budgetOptions("cost", 5, Infinity)).toEqual(["another $5.00", "stop"]);
    expect(budgetOptions("cost", 5, 1.25)).toEqual(["another $1.25", "stop"]);
    expect(budgetOptions("steps", 500, 1)).toEqual(["another 1 step", "stop"]);
    expect(budgetOptions("cost", 5, 0)).toBeUndefined();
    expect(budgetOptions("steps", 5, 0)).toBeUndefined();
  });

  it("counts the extension from what is used", () => {
    expect(raisedLimit({ limit: "cost", used: 0.13, of: 0.1 }, 0.1)).toBe(0.23);
    expect(raisedLimit({ limit: "steps", used: 5, of: 5 }, 5)).toBe(10);
    expect(parseGrantedAmount("cost", "stop")).toBeUndefined();
    expect(budgetText({ limit: "cost", used: 0.1134, of: 0.1 })).toContain(
      "cost $0.1134; its limit is $0.10",
    );
    expect([usd(0.1), usd(2), usd(0.0001), usd(1234.5)]).toEqual(["$0.10", "$2.00", "$0.0001", "$1234.50"]);
  });
});
