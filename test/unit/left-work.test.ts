/** What counts as work, and what of it is delivered: HEAD, else the one branch that is ahead; all else is named. */
import { execFileSync, spawnSync } from "node:child_process";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { listLeftOut } from "../../activities/contract/delivery.ts";
import { prepareWork, type Prepared } from "../../activities/git/sandbox-git.ts";
import { createFakeSandbox, type FakeSandbox } from "../support/fake-sandbox.ts";

const withPython = describe.skipIf(spawnSync("python3", ["--version"]).status !== 0);

const AUTHOR = { name: "Ada", email: "ada@example.org" };

function sh(sandbox: FakeSandbox, script: string): string {
  const env = { ...process.env, GIT_CONFIG_NOSYSTEM: "1", GIT_CONFIG_GLOBAL: "/dev/null" };
  return execFileSync("bash", ["-ec", script], { cwd: sandbox.root, encoding: "utf8", env }).trim();
}

/** Makes a commit of a new file. */
const COMMIT = `work() { echo "$1" > "$1.txt"; git add -A; git commit -qm "work $1"; };`;

const SETTINGS = `git config user.name ${AUTHOR.name}; git config user.email ${AUTHOR.email};`;

/** A repository on the session's branch, in which the script then runs. */
async function after(
  script: string,
  use: (prepared: Prepared | { readonly trouble: string }, sandbox: FakeSandbox, base: string) => unknown,
  order: { readonly pushed?: true } = {},
): Promise<void> {
  const sandbox = await createFakeSandbox();
  try {
    const base = sh(
      sandbox,
      `git init -q -b session .; ${SETTINGS} echo start > start; git add -A; git commit -qm start; git rev-parse HEAD`,
    );
    sh(sandbox, `${COMMIT} ${script}`);
    const known = order.pushed ? sh(sandbox, "git rev-parse pushed").split("\n") : [];
    if (order.pushed) sh(sandbox, "git tag -d pushed");
    const commit = { message: "The rest", author: AUTHOR };
    await use(await prepareWork(sandbox, { base, lfs: false, commit, known, onto: known }), sandbox, base);
  } finally {
    sh(sandbox, "rm -rf ../*-outside");
    await sandbox.dispose();
  }
}

const BACK = "git checkout -q session";
const OUTSIDE = `"$PWD-outside"`;

withPython("what a delivery takes", () => {
  it.each([
    ["a commit on the session's branch", "work one", "HEAD"],
    ["uncommitted files", "echo one > one.txt", "HEAD"],
    ["a commit on another branch, which is left checked out", "git checkout -qb feature; work one", "HEAD"],
    ["a detached HEAD", "git checkout -q --detach; work one", "HEAD"],
    ["an orphan branch", "git checkout -q --orphan fresh; work one", "HEAD"],
    ["the one other branch", `git checkout -qb feature; work one; work two; ${BACK}`, "refs/heads/feature"],
    [
      "the one other branch, also if it is named twice",
      `git checkout -qb feature; work one; git branch backup; ${BACK}`,
      "refs/heads/backup",
    ],
    [
      "the one other branch, if HEAD has no commit",
      `git checkout -qb feature; work one; git checkout -q --orphan fresh; git rm -rqf .`,
      "refs/heads/feature",
    ],
    [
      "the one branch of a worktree",
      `git worktree add -q -b feature ${OUTSIDE}; cd ${OUTSIDE}; work one`,
      "refs/heads/feature",
    ],
  ])("is %s", (_what, script, ref) =>
    after(script, (prepared, sandbox) => {
      expect(prepared).toMatchObject({ ref, leftOutCount: 0, isElsewhere: false });
      const { head } = prepared as Prepared;
      expect(sh(sandbox, `git show --format= --name-only ${head}`)).toMatch(
        /^(one|two)\.txt$|^one\.txt\nstart$/,
      );
    }),
  );

  it.each([
    [
      "two branches",
      `git checkout -qb a; work one; ${BACK}; git checkout -qb b; work two; ${BACK}`,
      ["branch", "branch"],
    ],
    [
      "two branches of which one has the other's commits",
      `git checkout -qb a; work one; git checkout -qb b; work two; ${BACK}`,
      ["branch", "branch"],
    ],
    ["a stash", "echo one >> start; git stash -q", ["stash"]],
    ["a stash of an untracked file", "echo one > one.txt; git stash -qu", ["stash"]],
    [
      "a stash that has no log",
      "echo one >> start; git update-ref refs/stash $(git stash create); git reset -q --hard",
      ["stash"],
    ],
    [
      "a reference whose name begins like the stash's",
      `git checkout -q --detach; work one; git update-ref refs/stashed/x HEAD; ${BACK}; rm .git/logs/HEAD`,
      ["reference"],
    ],
    [
      "a change of a file that is assumed to be unchanged",
      "git update-index --assume-unchanged start; echo one >> start",
      ["hidden"],
    ],
    [
      "a change of a file that Git is told to pass over",
      "git update-index --skip-worktree start; echo one >> start",
      ["hidden"],
    ],
    ["two stashes", "echo one >> start; git stash -q; echo two >> start; git stash -q", ["stash", "stash"]],
    ["a detached HEAD that was left", `git checkout -q --detach; work one; ${BACK}`, ["detached"]],
    ["a commit that was reset", "work one; git reset -q --hard HEAD^", ["detached"]],
    ["a branch that was deleted", `git checkout -qb a; work one; ${BACK}; git branch -qD a`, ["detached"]],
    ["a tag", `git checkout -q --detach; work one; git tag kept; ${BACK}`, ["tag"]],
    ["an annotated tag", `git checkout -q --detach; work one; git tag -am t kept; ${BACK}`, ["tag"]],
    [
      "a reference of another kind",
      `git checkout -q --detach; work one; git update-ref refs/mine/x HEAD; ${BACK}`,
      ["reference"],
    ],
    [
      "a worktree with uncommitted files",
      `git worktree add -q --detach ${OUTSIDE}; echo one > ${OUTSIDE}/one.txt`,
      ["worktree"],
    ],
    [
      "a worktree with commits on no branch",
      `git worktree add -q --detach ${OUTSIDE}; cd ${OUTSIDE}; work one`,
      ["worktree"],
    ],
    ["a repository inside the repository", "git init -q inner; cd inner; echo one > one", ["repository"]],
    [
      "files on a branch without a commit",
      "git checkout -q --orphan fresh; echo one > one.txt",
      ["no-commit"],
    ],
  ])("is never %s, which is named instead", (_what, script, reasons) =>
    after(script, (prepared) => {
      expect(prepared).toMatchObject({ fresh: 0, ahead: 0, leftOutCount: reasons.length });
      expect((prepared as Prepared).leftOut.map(({ reason }) => reason)).toEqual(reasons);
    }),
  );

  it.each([
    ["a folder that became a link", "rm -rf d; ln -s /etc d", "D\td/f\nA\td"],
    ["a link that became a folder", "rm l; mkdir l; echo 1 > l/f", "D\tl\nA\tl/f"],
    ["a file that became a folder", "rm start; mkdir start; echo 1 > start/f", "D\tstart\nA\tstart/f"],
    ["a folder that became a file", "rm -rf d; echo 1 > d", "D\td/f\nA\td"],
    ["a name that differs in case", "git config core.ignoreCase true; echo 1 > Start", "A\tStart"],
    ["a mode", "chmod +x start", "M\tstart"],
    [
      "line ends that git warns of",
      "git config core.autocrlf input; git config core.safecrlf true; printf '1\\r\\n' > x",
      "A\tx",
    ],
    [
      "a name of 255 bytes that is no UTF-8",
      "echo 1 > $(printf 'b%.0s' {1..254})$'\\xe9'",
      `A\t"${"b".repeat(254)}\\351"`,
    ],
    [
      "a message that git would clean away",
      "git config commit.cleanup strip; git config core.commentChar T; echo 1 > x",
      "A\tx",
    ],
  ])("is %s", (_what, script, change) =>
    after(
      `mkdir d; echo 1 > d/f; ln -s start l; git add -A; git commit -qm more; ${script}`,
      (prepared, sandbox) => {
        expect(prepared).toMatchObject({ ref: "HEAD", ahead: 2, leftOutCount: 0 });
        const shown = sh(sandbox, "git show --format= --name-status --no-renames");
        expect(shown.split("\n").toSorted()).toEqual(change.split("\n").toSorted());
      },
    ),
  );

  it.each([
    ["a file that became a pipe", "rm start; mkfifo start", ["start"]],
    ["a name that Git refuses", "mkdir d; echo 1 > git~1; echo 1 > d/.GIT", ["d/.GIT", "git~1"]],
    ["a folder that became a repository", "rm start; git init -q start; echo 1 > start/f", ["start/"]],
  ])("is all the rest where there is %s, which is named", (_what, script, paths) =>
    after(`echo 1 > fine; ${script}`, (prepared, sandbox) => {
      expect(prepared).toMatchObject({ ref: "HEAD", ahead: 1, isElsewhere: false });
      expect((prepared as Prepared).leftOut.map(({ path }) => path)).toEqual(paths);
      expect(sh(sandbox, "git show --format= --name-only --diff-filter=A")).toBe("fine");
    }),
  );

  it("is what is there, not what it was replaced with in this repository", () =>
    after("work one; work two; git replace --graft HEAD", (prepared) => {
      expect(prepared).toMatchObject({ ref: "HEAD", ahead: 2 });
    }));

  it("is what lies outside of a sparse checkout, too", () =>
    after(
      "git sparse-checkout set nothing; mkdir -p d; echo one > d/one; echo two >> start",
      (prepared, sandbox) => {
        expect(prepared).toMatchObject({ ref: "HEAD", ahead: 1, leftOutCount: 0 });
        expect(sh(sandbox, "git show --format= --name-only")).toBe("d/one\nstart");
      },
    ));

  it.each([
    ["a broken configuration", "echo '[core' >> .git/config", /bad config line/],
    ["a bare one", "git config core.bare true", /must be run in a work tree/],
    [
      "one of a newer format",
      "git config core.repositoryformatversion 1; git config extensions.newer yes",
      /unknown repository extension/,
    ],
    ["another work tree", "git config core.worktree /tmp", /Git takes \/tmp for its top/],
    ["no repository", "rm -rf .git", /not a git repository/],
  ])("of %s is refused in Git's own words", (_what, script, words) =>
    after(`work one; ${script}`, (prepared) => {
      expect(prepared).toEqual({ trouble: expect.stringMatching(words) as string });
    }),
  );

  it("is HEAD if it has commits, and the other work is named", () =>
    after(`git checkout -qb a; work one; ${BACK}; work two; echo x >> start; git stash -q`, (prepared) => {
      expect(prepared).toMatchObject({ ref: "HEAD", fresh: 1, isElsewhere: true });
      const { leftOut, leftOutCount } = prepared as Prepared;
      expect(listLeftOut(leftOut, leftOutCount, 400)).toMatch(
        /^the branch a \(1 commit\), stash@\{0\} \(WIP on session: .*\)$/,
      );
    }));

  it("is not the other branch if HEAD has only what was left uncommitted", () =>
    after(`git checkout -qb a; work one; ${BACK}; echo x > x`, (prepared) => {
      expect(prepared).toMatchObject({
        ref: "HEAD",
        ahead: 1,
        fresh: 0,
        leftOut: [{ path: "a", reason: "branch" }],
      });
    }));

  it("counts nothing twice: not what was rebased, amended or delivered before", async () => {
    await after("work one; git commit -q --amend -m again; git rebase -q --root --exec true", (prepared) => {
      expect(prepared).toMatchObject({ leftOutCount: 0 });
    });
    await after(
      `work one; git tag pushed; git checkout -qb a; ${BACK}`,
      (prepared) => {
        expect(prepared).toMatchObject({ ref: "HEAD", fresh: 0, leftOutCount: 0 });
      },
      { pushed: true },
    );
  });

  it("is a later branch only if it goes on from what was delivered", async () => {
    await after(
      `work one; git tag pushed; git checkout -qb a; work two; ${BACK}`,
      (prepared) => {
        expect(prepared).toMatchObject({ ref: "refs/heads/a", fresh: 1, leftOutCount: 0 });
      },
      { pushed: true },
    );
    await after(
      `git branch old; work one; git tag pushed; git checkout -q old; work two; ${BACK}`,
      (prepared) => {
        expect(prepared).toMatchObject({ ref: "HEAD", fresh: 0, leftOut: [{ path: "old" }] });
      },
      { pushed: true },
    );
  });

  it.each([
    "git merge -q a",
    "git rebase -q a",
    "git cherry-pick a",
    "git revert --no-edit HEAD~",
    "git bisect start",
  ])("is nothing while this is not finished: %s", (command) =>
    after(
      `git checkout -qb a; echo a > start; git commit -qam a; ${BACK}; echo b > start; git commit -qam b; echo c > start; git commit -qam c; ${command} >/dev/null 2>&1 || true`,
      (prepared) => {
        expect(prepared).toMatchObject({ trouble: expect.stringContaining("not finished") as string });
      },
    ),
  );

  it("says the line of git's error that names the cause", () =>
    after("echo x > x", async (_prepared, sandbox, base) => {
      sh(sandbox, "echo y > y; mkdir .git/index.lock");
      const commit = { message: "More", author: AUTHOR };
      expect(await prepareWork(sandbox, { base, lfs: false, commit })).toEqual({
        trouble: expect.stringMatching(/Unable to create .*index\.lock.*File exists/) as string,
      });
    }));

  /** Places where a session may put a commit, and how it comes back from there. */
  const PLACES = [
    (n: number) => `work w${n}`,
    (n: number) => `git checkout -qb b${n}; work w${n}; git checkout -q -`,
    (n: number) => `git checkout -q --detach; work w${n}; ${BACK}`,
    (n: number) => `echo w${n} > w${n}.txt; git add -A; git stash -q`,
    (n: number) => `git checkout -q --detach; work w${n}; git tag t${n}; ${BACK}`,
    (n: number) =>
      `git worktree add -q -b tree${n} ../tree${n}-outside session; (cd ../tree${n}-outside; work w${n})`,
    (n: number) =>
      `git worktree add -q --detach ../free${n}-outside session; echo w${n} > ../free${n}-outside/w${n}.txt`,
    (n: number) => `echo w${n} > w${n}.txt`,
  ];

  it("delivers or names every piece of work, wherever it is", async () => {
    const places = fc.array(fc.integer({ min: 0, max: PLACES.length - 1 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(places, (chosen) =>
        after(chosen.map((place, n) => PLACES[place]?.(n) ?? "").join("\n"), (prepared, sandbox) => {
          const { head, leftOut, leftOutCount } = prepared as Prepared;
          expect(leftOut).toHaveLength(leftOutCount);
          const has = new Set(sh(sandbox, `git ls-tree --name-only ${head}`).split("\n"));
          const missing = chosen.filter((_place, n) => !has.has(`w${n}.txt`)).length;
          // Uncommitted files may have been stashed, or committed elsewhere, together with others.
          if (missing > 0) expect(leftOutCount).toBeGreaterThan(0);
          if (missing === 0 && !chosen.some((place) => place >= 1 && place <= 6))
            expect(leftOutCount).toBe(0);
        }),
      ),
      { numRuns: 12 },
    );
  }, 120_000);
});
