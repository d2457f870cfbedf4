import { describe, expect, it } from "vitest";
import { inAlternatives } from "../../../activities/text/format.ts";
import {
  readAnswer,
  type AnswerNames,
  type QuestionFacts,
  type Settlement,
} from "../../../activities/contract/questions.ts";
import { toClosing, resultFor, settledEvent } from "../../../activities/questions/settlement.ts";

const ask = { id: "s1c0", kind: "ask" as const };
const choice = { ...ask, options: ["npm", "pnpm"] };
const approval = { id: "s1c1", kind: "approval" as const };
const plan = { id: "s1c2", kind: "plan" as const };

describe("an answer's meaning", () => {
  it("quotes little of what was sent", () => {
    const long = `${"x".repeat(1_000_000)}\0`;
    for (const message of [{ question: long }, { option: long }, { action: long }, { text: long }]) {
      const answer = readAnswer([choice], message);
      expect(answer.ok ? "" : answer.reason).toMatch(/^.{1,200}$/);
    }
  });

  it.each<[name: string, open: Parameters<typeof readAnswer>[0], message: unknown, settlement: Settlement]>([
    ["words", [ask], { text: " 8080 " }, { how: "answered", text: "8080" }],
    ["a bare string", [ask], "8080", { how: "answered", text: "8080" }],
    ["an option by number", [choice], { option: 2 }, { how: "answered", text: "pnpm" }],
    ["an option in words", [choice], { text: "NPM", by: "ann" }, { how: "answered", text: "npm", by: "ann" }],
    ["no answer", [choice], { action: "decline" }, { how: "declined" }],
    ["leave", [approval], { action: "allow" }, { how: "allowed" }],
    ["permanent approval", [approval], { action: "allow-always" }, { how: "allowed", always: true }],
    ["a refusal with words", [approval], { action: "deny", text: "no" }, { how: "denied", text: "no" }],
    ["changes of a plan", [plan], "smaller", { how: "denied", text: "smaller" }],
    ["one of several", [ask, approval], { question: "s1c1", action: "allow" }, { how: "allowed" }],
  ])("%s", (_name, open, message, settlement) => {
    expect(readAnswer(open, message)).toMatchObject({ ok: true, settlement });
  });

  it("is refused in the words of where it comes from: fields, or a command's flags", () => {
    const flags: AnswerNames = {
      text: "words",
      option: "--option N",
      actions: (...names) => inAlternatives(names.map((name) => `--${name}`)),
    };
    const reasons = (open: QuestionFacts, message: object) =>
      [readAnswer([open], message), readAnswer([open], message, flags)].map((answer) =>
        answer.ok ? "taken" : answer.reason,
      );
    const text = "Which?";
    expect(reasons({ ...choice, text }, { action: "allow" })).toEqual([
      "the action allow is for approvals, and this is a question: answer it with option or text",
      "--allow is for approvals, and this is a question: answer it with --option N or words",
    ]);
    expect(reasons({ ...ask, text }, { option: 1 })).toEqual([
      "the question has no options: answer it with text",
      "the question has no options: answer it with words",
    ]);
    expect(reasons({ ...approval, text }, { text: "yes" })).toEqual([
      "answer an approval with the action allow, allow-always or deny",
      "answer an approval with --allow, --allow-always or --deny",
    ]);
    expect(reasons({ ...plan, text }, { action: "allow-always" })[1]).toBe(
      "answer a plan with --allow or --deny, or with words: the changes that you want",
    );
  });

  it.each<[name: string, open: Parameters<typeof readAnswer>[0], message: unknown]>([
    ["nothing is open", [], "yes"],
    ["several are open", [ask, approval], "yes"],
    ["another is named", [ask], { question: "s9c9", text: "yes" }],
    ["it is empty", [ask], { text: "" }],
    ["it is none of the options", [choice], { text: "yarn" }],
    ["there are no options", [ask], { option: 1 }],
    ["the number is too high", [choice], { option: 3 }],
    ["words are not an approval", [approval], { text: "yes" }],
    ["a plan is not approved permanently", [plan], { action: "allow-always" }],
    ["approval is not an answer", [ask], { action: "allow" }],
    ["it is too long", [ask], { text: "x".repeat(16_001) }],
    ["it is not an answer at all", [ask], 7],
    ["a field is of another kind", [ask], { text: { toString: "x" } }],
  ])("is not used if %s", (_name, open, message) => {
    expect(readAnswer(open, message).ok).toBe(false);
  });
});

describe("a question's outcome", () => {
  const question = { id: "s1c0", kind: "ask", defaultText: "npm" };

  it("names a default as such, in the result, in the row and in the event", () => {
    const expired: Settlement = { how: "defaulted", why: "expired" };
    expect(resultFor(question, expired)?.text).toContain("No one answered in time");
    expect(toClosing(question, expired)).toEqual({ status: "defaulted", answer: "npm" });
    expect(settledEvent(question, expired).type).toBe("question:expired");
    const unattended: Settlement = { how: "defaulted", why: "unattended" };
    expect(resultFor(question, unattended)?.text).toContain("No one is asked in this session");
    expect(settledEvent(question, unattended)).toMatchObject({ data: { how: "defaulted", by: null } });
  });

  it("gives a call its own result only if a person allowed it", () => {
    const call = { ...question, kind: "approval", defaultText: null };
    expect(resultFor(call, { how: "allowed" })).toBeUndefined();
    for (const end of [{ how: "denied" }, { how: "declined" }, { how: "withdrawn", why: "said" }] as const)
      expect(resultFor(call, end)?.outcome).toBe("error");
  });
});
