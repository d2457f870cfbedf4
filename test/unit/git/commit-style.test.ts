/** Whose the commits are, their trailers and their messages. */
import { describe, expect, it } from "vitest";
import { type GitConfig, gitConfigSchema } from "../../../activities/config/git-settings.ts";
import type { Person } from "../../../activities/config/commit-settings.ts";
import { BRANCH, BOT, deliveringSession } from "../../support/delivering-session.ts";

const OWNER: Person = { author: { name: "Ann Äxample", email: "7+ann@users.noreply.example" } };

describe("authors and trailers", () => {
  const asked = (more: Readonly<Record<string, unknown>>): Partial<GitConfig> =>
    gitConfigSchema.parse({ committer: BOT, ...more });

  it("names the owner as the author, the agent as a co-author, and the model", async () => {
    const { work, deliver, shown, sh } = await deliveringSession({
      ...asked({
        author: "owner",
        coAuthor: ["owner", "agent"],
        trailers: { "Assisted-by": "Longhaul:{model}" },
      }),
      person: OWNER,
    });
    work("one", "Add one\n\nReviewed-by: Bob <bob@example.org>");
    expect(await deliver()).toMatchObject({ remarks: [] });
    expect(shown("%an <%ae> %cn <%ce>%n%B")).toBe(
      `Ann Äxample <7+ann@users.noreply.example> Acme Bot <bot@acme.example>\nAdd one\n\nReviewed-by: Bob <bob@example.org>\nAssisted-by: Longhaul:openai/test\nCo-authored-by: Acme Bot <bot@acme.example>`,
    );
    expect(shown("%(trailers:key=Signed-off-by)")).toBe("");
    // What has the lines is left as it is.
    work("two");
    sh("git commit -q --amend --no-edit --trailer 'Assisted-by: Longhaul:openai/test'");
    await deliver();
    expect(shown("%B").match(/Assisted-by/g)).toHaveLength(1);
  });

  it("leaves the author of a commit that the agent took over", async () => {
    const { work, deliver, shown, sh } = await deliveringSession({
      ...asked({ author: "owner" }),
      person: OWNER,
    });
    work("one");
    sh("git commit -q --amend --no-edit --author 'Eve <eve@example.org>'");
    await deliver();
    expect(shown("%ae %ce")).toBe("eve@example.org bot@acme.example");
  });

  it.each<[what: string, person: Person | undefined]>([
    ["the policy does not know", undefined],
    ["the policy knows without an address, as a bot", { login: "ann" }],
  ])("falls back to the agent for an owner whom %s, and says so (C6)", async (_what, person) => {
    const { work, deliver, shown } = await deliveringSession({
      ...asked({ author: "owner", coAuthor: ["owner"] }),
      ...(person && { person }),
    });
    const own = work("one");
    expect(await deliver()).toMatchObject({
      commit: own,
      remarks: ["the commits do not name ann: the worker's policy has no people.ann.author"],
    });
    expect(shown("%an %ae%n%b")).toBe("Acme Bot bot@acme.example");
  });

  it("changes nothing that nobody asked for", async () => {
    const { work, deliver, remote } = await deliveringSession();
    const own = work("one");
    expect(await deliver()).toMatchObject({ commit: own });
    expect(remote.at(BRANCH)).toBe(own);
  });

  it("refuses characters that a commit's own encoding has no place for", async () => {
    const { work, deliver, sh } = await deliveringSession({ ...asked({ author: "owner" }), person: OWNER });
    work("one");
    sh("git -c i18n.commitEncoding=ISO-8859-1 commit -q --allow-empty -m x");
    expect(await deliver()).toMatchObject({
      refused: expect.stringContaining("i18n.commitEncoding") as string,
    });
  });
});

describe("a pattern for messages", () => {
  const pattern = "^(feat|fix)(\\(.+\\))?: .{1,72}$";
  const message = { pattern, onMismatch: "refuse" as const };

  it("refuses the delivery of a commit that does not match, and takes it mended (C8)", async () => {
    const { work, deliver, sh, remote } = await deliveringSession({ message });
    work("one", "feat: add one");
    work("two", "Add two");
    expect(await deliver()).toMatchObject({
      refused: expect.stringMatching(/"Add two", does not match git\.message\.pattern/) as string,
      isPassing: false,
    });
    sh("git commit -q --amend -m 'feat(x): add two'");
    expect(await deliver()).toHaveProperty("commit");
    expect(remote.at(BRANCH)).toBe(sh("git rev-parse HEAD"));
    // Of the commits of others, nothing is asked.
    remote.commit("main", { theirs: "1\n" });
    sh("git fetch -q; git merge -q -m 'fix: merge' origin/main");
    expect(await deliver()).toHaveProperty("commit");
  });

  it("is given up after a second, and judges at most 1,000 characters (C8)", async () => {
    const { work, deliver } = await deliveringSession({
      message: { pattern: "^(a+)+$", onMismatch: "refuse" },
    });
    work("one", `${"a".repeat(60)}!`);
    expect(await deliver()).toMatchObject({ refused: expect.stringContaining("within a second") as string });
    expect(await deliver({ message: { pattern: "^[^]{0,1000}$", onMismatch: "refuse" } })).toHaveProperty(
      "commit",
    );
    work("two", "b".repeat(5_000));
    expect(await deliver({ message: { pattern: "^[^]{1001}", onMismatch: "refuse" } })).toMatchObject({
      refused: expect.stringContaining("does not match") as string,
    });
    expect(await deliver({ message: { pattern: "^b[^]{999}$", onMismatch: "refuse" } })).toHaveProperty(
      "commit",
    );
  });

  it.each<[what: string, settings: object, why: RegExp]>([
    ["a pattern that is none", { message: { pattern: "(" } }, /regular expression/],
    ["a sign-off", { trailers: { "Signed-off-by": "Ann <a@b>" } }, /person's to write/],
    ["a trailer over two lines", { trailers: { "Assisted-by": "a\nb" } }, /one line/],
    ["an author without an address", { author: "Ann" }, /agent|address/],
  ])("is refused before anything starts: %s", (_what, settings, why) => {
    const result = gitConfigSchema.safeParse(settings);
    expect(JSON.stringify(result.error?.issues)).toMatch(why);
  });

  it("takes people as text and as fields", () => {
    const parsed = gitConfigSchema.parse({ author: "Ann Example <ann@example.com>" });
    expect(parsed.author).toEqual({ name: "Ann Example", email: "ann@example.com" });
    expect(gitConfigSchema.parse(parsed)).toEqual(parsed);
    expect(gitConfigSchema.parse({ author: "agent" }).author).toEqual(gitConfigSchema.parse({}).author);
  });
});
