import { describe, expect, it } from "vitest";
import { readReview } from "../../../activities/contract/review.ts";
import { reviewText } from "../../../client/commands/review.ts";
import { prepareReview, type ReviewFlags } from "../../../client/review/prepare-review.ts";

/** Workers run elsewhere: nothing is asked. */
const prepared = (more: Partial<ReviewFlags> = {}) =>
  prepareReview("https://git.acme.test/acme/app/pull/7/files", { setup: false, ...more }, () => undefined);

describe("a review", () => {
  it("is a read-only session on the newest commit, from which nothing is pushed", async () => {
    const { start } = await prepared({ focus: "security" });
    const { config, task } = start;
    expect(task).toBe("Review the pull request https://git.acme.test/acme/app/pull/7. Focus on: security");
    expect(config.repository).toMatchObject({
      url: "https://git.acme.test/acme/app.git",
      ref: "refs/pull/7/head",
      forge: "github",
      push: "never",
      pr: "none",
      depth: 0,
    });
    expect(config.reviews).toEqual({
      url: "https://git.acme.test/acme/app/pull/7",
      number: 7,
      post: false,
      mayApprove: false,
    });
    expect(config.sandbox).toMatchObject({ network: "listed" });
    expect(config.sandbox).not.toHaveProperty("keys");
    expect(config).not.toHaveProperty("verify");
    expect(config.outputSchema).toBeDefined();
  });

  it("has the network that a person names, and is posted if they say so", async () => {
    const { start } = await prepared({ network: "bridge", post: true });
    expect(start.config.sandbox.network).toBe("bridge");
    expect(start.config.reviews?.post).toBe(true);
  });

  it("of anything but a pull request's address is 2", async () => {
    await expect(prepareReview("acme/app#7", { setup: false }, () => undefined)).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringContaining("The address of a pull request has the form") as string,
    });
  });

  it("is printed with each finding's place", () => {
    const findings = [
      { path: "a", line: 3, endLine: 5, text: "Wrong.\nVery.", suggestion: "b", severity: "high" },
      { path: "b", line: 2, side: "old", text: "Gone." },
      { path: "c", text: "Hm." },
    ];
    const review = readReview({ summary: "Good.", verdict: "request-changes", findings });
    expect(reviewText(review ?? expect.fail("no review"))).toBe(`Good.

It wants changes: 3 findings.

a:3-5 (high)
  Wrong.
  Very.
  Instead:
  b

b:2 (before the change) (medium)
  Gone.

c (medium)
  Hm.
`);
  });
});
