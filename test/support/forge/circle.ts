/**
 * The circle of a pull request's life, as one script for every forge: a check fails and is mended, a reviewer writes line comments, the
 * base moves into a conflict, a person pushes a commit of their own, and it is merged.
 */
import { expect } from "vitest";
import { findFollow, listFollowRounds } from "../../../activities/store/follows.ts";
import type { Store } from "../../../activities/store/db.ts";
import { eventually } from "../eventually.ts";
import { call, scriptedModel, text, type ModelScript } from "../scripted-model.ts";
import type { SessionEvents } from "../session-events.ts";

/** What people do on a forge, and see there. */
export interface CirclePlace {
  head(): Promise<string>;
  /** A check of the head ends. */
  report(result: "failed" | "good", log: readonly string[]): Promise<void>;
  /** A person who may write wants changes, and says why on two lines of the file `one`. */
  review(comments: readonly { readonly line: number; readonly text: string }[]): Promise<void>;
  /** A person commits one file. @returns the commit */
  push(branch: "base" | "branch", path: string, text: string): Promise<string>;
  squash(): Promise<void>;
  isMergeable(): Promise<boolean>;
  /** Of the conversation, the oldest first. */
  comments(): Promise<readonly string[]>;
  /** In the order of their lines. */
  threads(): Promise<readonly CircleThread[]>;
  /** What git itself answers in the repository. */
  git(...args: string[]): string;
  readonly branch: string;
}

interface CircleThread {
  readonly name: string;
  readonly line: number;
  readonly texts: readonly string[];
  readonly isResolved: boolean | undefined;
}

export interface CircleStand {
  readonly store: Store;
  readonly session: SessionEvents & { readonly id: string };
  readonly place: CirclePlace;
  /** Something has changed: a hook comes, or none, or two. */
  readonly changed: () => Promise<void>;
}

/** Where a worker may be killed: each is reached before the change is made. */
export type CirclePoint = "red" | "review" | "conflict" | "foreign" | "merge";

const PROMPT_MS = 120_000;

/** The session's answers, whichever forge it is on. @param place known once the pull request is open */
export function circleModel(place: () => CirclePlace): ModelScript {
  return (
    scriptedModel()
      // The verification is red: nothing is there.
      .says("All is there.")
      .calls("bash", {
        command: "printf '1\\n2\\n3\\nbroken\\n' > one; git add -A; git commit -qm 'Add one'",
      })
      .says("One is there.")
      .calls("bash", { command: "sed -i s/broken/mended/ one; git commit -qam 'Mend one'" })
      .says("Mended.")
      .replies(async () => {
        const [first, second] = await place().threads();
        return {
          parts: [
            text("I answer both."),
            call("bash", { command: "sed -i s/^2/zwei/ one; git commit -qam 'Say zwei'" }),
            call("reply_review", { thread: first?.name, text: "It is German now.", outcome: "fixed" }),
            call("reply_review", { thread: second?.name, text: "Three is right.", outcome: "declined" }),
          ],
        };
      })
      .says("Both are answered.")
      .calls("bash", {
        command:
          "git merge -q origin/main; printf '1\\nzwei\\n3\\nmended\\ntheirs\\n' > one; git add -A; git commit -qm 'Merge main'",
      })
      .says("Merged.")
  );
}

/** Settings of the session that the script needs. */
export const CIRCLE_VERIFY = "test -f one";

/** @param at is called at each point, before people do something */
export async function playCircle(
  stand: CircleStand,
  at: (point: CirclePoint) => Promise<void> = async () => {},
): Promise<void> {
  const { place, store, session, changed } = stand;
  const roundOver = (number: number) =>
    eventually(
      `round ${number} is over`,
      async () => {
        const round = (await listFollowRounds(store.db, session.id)).find((one) => one.number === number);
        return round?.answeredAt !== null && round?.answeredAt !== undefined;
      },
      PROMPT_MS,
    );
  const first = await place.head();
  await at("red");
  await place.report("failed", ["##[group]Run npm test", "FAIL one.test: broken", "##[error]broken"]);
  await changed();
  await eventually("the check is mended", async () => (await place.head()) !== first, PROMPT_MS);
  await roundOver(1);
  await place.report("good", []);
  await changed();

  const second = await place.head();
  await at("review");
  await place.review([
    { line: 2, text: "In German, please." },
    { line: 3, text: "Why three?" },
  ]);
  await changed();
  await eventually("the review is worked on", async () => (await place.head()) !== second, PROMPT_MS);
  await roundOver(2);
  await place.report("good", []);
  await changed();

  const third = await place.head();
  await at("conflict");
  const base = await place.push("base", "one", "theirs\n");
  await changed();
  await eventually(
    "the conflict is gone",
    async () => (await place.head()) !== third && (await place.isMergeable()),
    PROMPT_MS,
  );
  await roundOver(3);
  expect(place.git("rev-parse", `${place.branch}^2`)).toBe(base);

  await at("foreign");
  const own = await place.push("branch", "two", "2\n");
  await changed();
  await eventually(
    "people are told",
    async () => (await session.dataOf("follow:waiting")).length > 0,
    PROMPT_MS,
  );
  expect(await place.head()).toBe(own);

  await at("merge");
  await place.squash();
  await changed();
  await eventually(
    "following has ended",
    async () => (await findFollow(store.db, session.id))?.endedAt !== null,
    PROMPT_MS,
  );
  for (const commit of [base, own]) place.git("merge-base", "--is-ancestor", commit, place.branch);
}

/** All that must be the same however often, and in whatever order, the follower was woken. */
export async function circleEnd({ store, session, place }: CircleStand) {
  const follow = await findFollow(store.db, session.id);
  const rounds = await listFollowRounds(store.db, session.id);
  const events = await session.events();
  const verdicts = events.filter(({ type }) => type.startsWith("follow:") && type !== "follow:looked");
  return {
    state: follow?.state,
    rounds: rounds.map(({ number, reasons, outcome, pushed, answeredAt }) => ({
      number,
      reasons: reasons.map(({ kind, name }) => (kind === "thread" ? kind : `${kind} ${name}`)),
      outcome,
      hasPushed: pushed !== null,
      isAnswered: answeredAt !== null,
    })),
    verdicts: verdicts.map(({ type, data }) => {
      const { reasons, threads, end } = data as Readonly<Record<string, unknown>>;
      return { type, reasons, threads, end };
    }),
    // The first commit is the repository's own.
    commits: place.git("log", "--topo-order", "--format=%s", place.branch).split("\n").slice(0, -1),
    // It was merged by a squash: of both branches the same.
    files: {
      one: place.git("show", `${place.branch}:one`),
      two: place.git("show", "main:two"),
    },
    posts: (await place.comments()).map(withoutMark),
    threads: (await place.threads()).map(({ line, texts, isResolved }) => ({
      line,
      texts: texts.map(withoutMark),
      isResolved,
    })),
  };
}

/** Neither the mark, which has the session's id, nor what it has cost. */
const withoutMark = (post: string): string =>
  post
    .replace(/\s*<!-- longhaul .* -->/, "")
    .replace(/, \d[\d.,]* USD|, \$[\d.,]+/, "")
    .replaceAll(/longhaul follow \S+`/g, "longhaul follow ID`");

const toldRound = (number: number, ...reasons: readonly string[]) => ({
  number,
  reasons,
  outcome: "completed",
  hasPushed: true,
  isAnswered: true,
});
const told = (...reasons: readonly string[]) => ({ type: "follow:round", reasons });

/** What the circle comes to on every forge that can resolve a thread. */
export const CIRCLE_END = {
  state: "merged",
  rounds: [
    toldRound(1, "check ci / test"),
    toldRound(2, "thread", "thread", "changes dev"),
    toldRound(3, "conflict 1"),
  ],
  verdicts: [
    { type: "follow:started" },
    told("the check ci / test failed"),
    told("a comment on one", "a comment on one", "dev wants changes"),
    { type: "follow:answered", threads: 2 },
    told("it conflicts with its base in 1 file"),
    { type: "follow:waiting" },
    { type: "follow:ended", end: "merged" },
  ],
  commits: ["Change two", "Merge main", "Change one", "Say zwei", "Mend one", "Add one"],
  files: { one: "1\nzwei\n3\nmended\ntheirs", two: "2" },
  posts: [
    "Longhaul waits: somebody else has pushed commits on top of the session's: nothing is done until somebody who may write to the repository mentions it in a comment.",
    "Merged. Longhaul has worked on it in 3 rounds.",
  ],
  threads: [
    { line: 2, texts: ["In German, please.", "It is German now."], isResolved: true },
    { line: 3, texts: ["Why three?", "Three is right."], isResolved: false },
  ],
};
