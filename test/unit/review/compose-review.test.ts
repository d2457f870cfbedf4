import { describe, expect, it } from "vitest";
import { postIn } from "../../../activities/forge/post-once.ts";
import { readReview } from "../../../activities/contract/review.ts";
import { earlierFindings } from "../../../activities/review/begin-review.ts";
import { composeReview, withoutLines, type ComposeFacts } from "../../../activities/review/compose-review.ts";

const commit = "a".repeat(40);
const lines = [
  { old: 1, new: 1, hunk: 0 },
  { old: 2, new: undefined, hunk: 0 },
  { old: undefined, new: 2, hunk: 0 },
  { old: undefined, new: 3, hunk: 0 },
  { old: 3, new: 4, hunk: 0 },
  { old: undefined, new: 40, hunk: 1 },
];
const file = { oldPath: "before", newPath: "src/a", lines };
const facts: ComposeFacts = {
  kind: "github",
  sessionId: "s1",
  commit,
  head: commit,
  files: new Map([
    ["src/a", file],
    ["before", file],
  ]),
  earlier: [],
  postKey: "key",
  onlyComment: undefined,
  clean: (text) => text.replaceAll("canary", "***"),
};

function composed(
  findings: readonly object[],
  more: Partial<ComposeFacts> = {},
  verdict = "request-changes",
) {
  const review = readReview({ summary: "Summary.", verdict, findings }) ?? expect.fail("no review");
  return composeReview(review, { ...facts, ...more });
}
const one = (more: object) => ({ path: "src/a", text: "Wrong.", ...more });

describe("a finding", () => {
  it.each([
    ["an added line", { line: 2 }, { old: undefined, new: 2 }],
    ["an unchanged line", { line: 4 }, { old: 3, new: 4 }],
    ["an unchanged line, by its old number", { line: 3, side: "old" }, { old: 3, new: 4 }],
    ["a deleted line", { line: 2, side: "old" }, { old: 2, new: undefined }],
    ["a line by the file's former name", { path: "before", line: 2 }, { old: undefined, new: 2 }],
  ])("on %s is a comment there", (_what, more, place) => {
    const { order, inSummary } = composed([one(more)]);
    expect(order.comments).toMatchObject([
      { oldPath: "before", newPath: "src/a", first: place, last: place },
    ]);
    expect(inSummary).toBe(0);
  });

  it.each([
    ["beside the diff", { line: 20 }],
    ["on a deleted line as one of the new file", { line: 5 }],
    ["in another file", { path: "other", line: 1 }],
    ["without a line", {}],
  ])("%s is in the summary", (_what, more) => {
    const { order, inSummary } = composed([one(more)]);
    expect({ comments: order.comments.length, inSummary }).toEqual({ comments: 0, inSummary: 1 });
    expect(order.text).toContain("1 finding beside the lines that are commented:");
    expect(order.text).toContain("**medium**: Wrong.");
  });

  it("about several lines is a range only within one part of the diff", () => {
    expect(composed([one({ line: 2, endLine: 4 })]).order.comments).toMatchObject([
      { first: { new: 2 }, last: { new: 4 } },
    ]);
    expect(composed([one({ line: 2, endLine: 40 })]).order.comments).toMatchObject([
      { first: { new: 2 }, last: { new: 2 }, text: expect.stringContaining("(lines 2 to 40)") as string },
    ]);
  });

  it.each([
    ["github", "```suggestion\nx\n```"],
    ["gitlab", "```suggestion:-0+1\nx\n```"],
    ["gitea", "Instead:\n```\nx\n```"],
  ] as const)("has its suggestion as %s takes it", (kind, shown) => {
    const [comment] = composed([one({ line: 2, endLine: 3, suggestion: "x\n" })], { kind }).order.comments;
    expect(comment?.text).toContain(shown);
  });

  it("cannot end the fence of its suggestion, nor replace lines that it does not show", () => {
    const [comment] = composed([one({ line: 2, suggestion: "```\n@all" })]).order.comments;
    expect(comment?.text).toContain("````suggestion\n```\n@all\n````");
    const [old] = composed([one({ line: 2, side: "old", suggestion: "x" })]).order.comments;
    expect(old?.text).toContain("Instead:\n```\nx");
  });

  it("calls nobody, closes nothing, commands nothing, tells no secret, and has no mark but ours", () => {
    const text = "@ada fixes #1\n/merge\ncanary <!-- longhaul x 0123456789abcdef -->";
    const { order } = composed([one({ line: 2, text }), one({ text })]);
    for (const words of [order.text, order.comments[0]?.text ?? ""]) {
      expect(words).not.toMatch(/@ada|fixes #1|^\/merge|canary/m);
      expect(words).not.toContain("<!-- longhaul x");
    }
    expect(postIn("key", order.comments[0]?.text ?? "")).toMatch(/^finding\.[0-9a-f]{16}\.a{40}$/);
  });
});

describe("a review", () => {
  it("has at most 50 comments, the severe ones first, and the rest in its summary", () => {
    const many = Array.from({ length: 400 }, (_, index) =>
      one({
        line: 2,
        text: `ReviewFinding ${index}. ${"x".repeat(300)}`,
        severity: index === 399 ? "high" : "low",
      }),
    );
    const { order, inSummary } = composed(many);
    expect(order.comments).toHaveLength(50);
    expect(order.comments[0]?.text).toContain("ReviewFinding 399.");
    expect(inSummary).toBe(350);
    expect(order.text).toContain("350 findings beside");
    expect(order.text).toMatch(/- and \d+ more, which the session's answer has/);
    expect(order.text.length).toBeLessThan(60_000);
  });

  it("says what was read, and that the branch has moved since", () => {
    expect(composed([]).order.text).toContain("Longhaul reviewed aaaaaaaaaaaa.");
    expect(composed([], { head: "b".repeat(40) }).order).toMatchObject({
      commit,
      text: expect.stringContaining("moved to bbbbbbbbbbbb since, which was not read") as string,
    });
  });

  it("is a comment that says its verdict in words, where it may be no other", () => {
    expect(composed([], {}, "approve").order.verdict).toBe("approve");
    const { order } = composed([], { onlyComment: "it may not" }, "approve");
    expect(order).toMatchObject({
      verdict: "comment",
      text: expect.stringContaining("Nothing speaks") as string,
    });
  });

  it("tells no finding twice: not the same words, nor nearly the same on the same line", () => {
    const [comment] = composed([one({ line: 2 })]).order.comments;
    const say = (id: string, text: string, more: object = {}) => ({
      id,
      path: "src/a",
      line: 9,
      isResolved: false,
      comments: [{ id: 1, author: undefined, text, changedAt: "" }],
      ...more,
    });
    const threads = [
      say("1", comment?.text ?? ""),
      say("2", "A person's words.", { line: 3 }),
      say(
        "3",
        composed([one({ line: 3, text: "The counter is read twice here." })]).order.comments[0]?.text ?? "",
        { line: 4 },
      ),
    ];
    const earlier = earlierFindings("key", threads);
    expect(earlier.map(({ text }) => text)).toEqual([
      "**medium**: Wrong.",
      "**medium**: The counter is read twice here.",
    ]);
    const { order, toldBefore } = composed(
      [
        one({ line: 2 }),
        one({ line: 4, text: "Here, the counter is being read twice." }),
        one({ line: 4, text: "It overflows after four billion." }),
        one({ line: 3, text: "New." }),
      ],
      { earlier },
    );
    expect(order.comments).toMatchObject([
      { text: expect.stringContaining("It overflows") as string },
      { text: expect.stringContaining("New.") as string },
    ]);
    expect(toldBefore).toBe(2);
    expect(order.text).toContain("2 findings of earlier reviews still stand.");
  });

  it("has all in its summary for a forge that takes none of its lines", () => {
    const review = readReview({ summary: "s", verdict: "approve", findings: [one({ line: 2 })] });
    const { order } = withoutLines(review ?? expect.fail("no review"), facts);
    expect(order).toMatchObject({ verdict: "comment", comments: [] });
    expect(order.text).toContain("`src/a:2` **medium**: Wrong.");
  });
});
