/** Pull requests that are followed until they are merged. */
import { sql } from "drizzle-orm";
import {
  check,
  doublePrecision,
  integer,
  json,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
} from "drizzle-orm/pg-core";
import { at } from "./columns.ts";

/** One row per session whose pull request is, or was, followed. */
export const follows = pgTable(
  "follows",
  {
    sessionId: text("session_id").primaryKey(),
    /** The forge's API, and the repository there as it was named last. */
    forge: text().notNull(),
    project: text().notNull(),
    number: integer("pull_number").notNull(),
    url: text("pull_url").notNull(),
    branch: text().notNull(),
    base: text("base_branch"),
    head: text("head_commit"),
    state: text("follow_state").notNull().default("following"),
    /** Why it is paused, or what it waits for, in words. */
    reason: text(),
    /** Rounds so far; how many when it began or a person went on with it, from when on all bounds count; and up to which number. */
    rounds: integer().notNull().default(0),
    roundsFrom: integer("rounds_from").notNull().default(0),
    roundsUpTo: integer("rounds_up_to").notNull(),
    maxCostUsd: doublePrecision("max_cost_usd").notNull(),
    openedAt: at("opened_at").notNull().defaultNow(),
    until: at("until").notNull(),
    /** Since when comments command it: what was said before is for people who read it then. */
    heardFrom: at("heard_from").notNull().defaultNow(),
    /** What was read last, as it is shown. */
    facts: json(),
    /** Equal as long as nothing has changed; since when; and how often it was looked at since. */
    digest: text(),
    changedAt: at("changed_at"),
    quietLooks: integer("quiet_looks").notNull().default(0),
    lookedAt: at("looked_at"),
    nextLookAt: at("next_look_at"),
    /** Comments of ours that are on the forge, by their ids. */
    posts: text().array().notNull().default([]),
    /** Since when it is not to be found. */
    lostAt: at("lost_at"),
    endedAt: at("ended_at"),
    mergeCommit: text("merge_commit"),
  },
  (t) => [
    check(
      "follows_state_check",
      sql`${t.state} in ('following','paused','merged','closed','lost','stopped')`,
    ),
    uniqueIndex("one_follower")
      .on(t.forge, t.project, t.number)
      .where(sql`${t.endedAt} is null`),
  ],
);

/** What the session was told. */
export interface ToldReason {
  readonly kind: "check" | "thread" | "changes" | "conflict" | "mention";
  /** A check's name, a thread's id, a reviewer's login, the name that a comment has in the round. */
  readonly name: string;
  /** A failure's signature, the newest comment of a thread, or the review that wants changes. */
  readonly mark?: string | undefined;
}

/** One row per message of the follower to its session. */
export const followRounds = pgTable(
  "follow_rounds",
  {
    sessionId: text("session_id").notNull(),
    number: integer("round_number").notNull(),
    /** The commit that it speaks of. */
    head: text("head_commit").notNull(),
    /** Of what was told: the same is not told twice. */
    digest: text().notNull(),
    reasons: json().$type<readonly ToldReason[]>().notNull(),
    toldAt: at("told_at").notNull().defaultNow(),
    endedAt: at("ended_at"),
    /** The commit that the session pushed in it. */
    pushed: text(),
    /** How the session's run ended. */
    outcome: text(),
    /** Replies and the like are done. */
    answeredAt: at("answered_at"),
    /** USD of the session before it, and of the round. */
    costBeforeUsd: doublePrecision("cost_before_usd").notNull().default(0),
    costUsd: doublePrecision("cost_usd"),
  },
  (t) => [primaryKey({ columns: [t.sessionId, t.number] })],
);

/** What the session wants to be said in a review's thread, or done with a check, once its round is over. The last word counts. */
export const followReplies = pgTable(
  "follow_replies",
  {
    sessionId: text("session_id").notNull(),
    round: integer("round_number").notNull(),
    kind: text("reply_kind").$type<"thread" | "check">().notNull(),
    /** A thread's id, or a check's name. */
    target: text().notNull(),
    /** What is said, or why the check is to run again. */
    text: text("reply_text").notNull(),
    outcome: text().$type<"fixed" | "answered" | "declined" | "rerun">().notNull(),
    /** The call that wants it: on a line that was left by a reset, it counts no more. */
    epoch: integer().notNull(),
    step: integer().notNull(),
    callIndex: integer("call_index").notNull(),
  },
  (t) => [primaryKey({ columns: [t.sessionId, t.round, t.kind, t.target] })],
);
