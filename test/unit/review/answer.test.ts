import { describe, expect, it } from "vitest";
import { checkAnswer, schemaTrouble } from "../../../activities/config/output-schema.ts";
import { readReview, REVIEW_ANSWER_SCHEMA } from "../../../activities/contract/review.ts";

const finding = (more: object) =>
  readReview({ summary: "s", findings: [{ path: "a", text: "t", ...more }] })?.findings[0];

describe("a review's answer", () => {
  it("is asked for by a schema that can be checked", async () => {
    expect(await schemaTrouble(REVIEW_ANSWER_SCHEMA)).toBeUndefined();
    const whole = {
      summary: "Fine.",
      verdict: "request-changes",
      findings: [
        { path: "a", line: 1, endLine: 2, side: "new", severity: "low", text: "t", suggestion: "x" },
      ],
    };
    expect(await checkAnswer(REVIEW_ANSWER_SCHEMA, JSON.stringify(whole))).toMatchObject({ ok: true });
    expect(readReview(whole)).toEqual(whole);
    const loose = { summary: "", verdict: "LGTM", findings: [{ path: "a", line: "12", text: "t", more: 1 }] };
    expect(await checkAnswer(REVIEW_ANSWER_SCHEMA, JSON.stringify(loose))).toMatchObject({ ok: true });
    expect(await checkAnswer(REVIEW_ANSWER_SCHEMA, '{"summary":"s"}')).toMatchObject({ ok: false });
  });

  it.each([
    ["REQUEST_CHANGES", "request-changes"],
    ["changes requested", "request-changes"],
    ["Approved", "approve"],
    ["approve?", "approve"],
    ["approve with changes", "comment"],
    ["fine", "comment"],
    [undefined, "comment"],
  ])("with the verdict %j is %s", (verdict, read) => {
    expect(readReview({ summary: "s", verdict, findings: [] })?.verdict).toBe(read);
  });

  it.each([
    [{ line: "L12-14" }, { line: 12, endLine: undefined }],
    [
      { line: 9, endLine: 7 },
      { line: 7, endLine: 9 },
    ],
    [
      { line: 7, endLine: 7 },
      { line: 7, endLine: undefined },
    ],
    [{ endLine: 7 }, { line: 7, endLine: undefined }],
    [{ line: 0 }, { line: undefined }],
    [{ line: 1.5 }, { line: undefined }],
    [{ side: "LEFT" }, { side: "old" }],
    [{ side: "RIGHT" }, { side: "new" }],
    [{ severity: "Critical" }, { severity: "high" }],
    [{ severity: "nit" }, { severity: "low" }],
    [{ severity: "?" }, { severity: "medium" }],
    [{ path: "/workspace/./src/a" }, { path: "src/a" }],
    [{ path: "./src/a" }, { path: "src/a" }],
    [{ suggestion: null }, { suggestion: undefined }],
    [{ suggestion: "" }, { suggestion: "" }],
  ])("reads the finding %j", (more, read) => {
    expect(finding(more)).toMatchObject(read);
  });

  it("leaves out what is no finding, and is none if nothing is left", () => {
    const findings = [null, "a", { path: "a" }, { text: "t" }, { path: " ", text: "t" }];
    expect(readReview({ summary: "s", findings })?.findings).toEqual([]);
    expect(readReview({ summary: " ", findings })).toBeUndefined();
    expect(readReview([])).toBeUndefined();
    expect(readReview("LGTM")).toBeUndefined();
  });
});
