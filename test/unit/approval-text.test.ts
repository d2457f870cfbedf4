import { describe, expect, it } from "vitest";
import { MAX_SHOWN_CHARS } from "../../activities/contract/questions.ts";
import { approvalText, shownQuestion } from "../../activities/questions/ask-person.ts";
import { judgeCall } from "../../activities/tools/permissions/permissions.ts";

const rules = [
  { tool: "bash", match: "git push *", action: "ask" },
  { tool: "*", match: "*secrets*", action: "ask" },
] as const;

function asked(input: object, toolName = "bash"): string {
  const call = { type: "tool-call", toolCallId: "c", toolName, input } as const;
  const verdict = judgeCall(rules, call);
  return verdict.action === "allow" ? expect.fail("A rule asks.") : approvalText(call, verdict);
}

describe("the text of an approval", () => {
  it("is the call, if it is short", () => {
    expect(asked({ command: "ls; git push origin x" })).toBe(
      "bash: ls; git push origin x\n(rule: git push *)",
    );
  });

  it.each([
    ["behind many commands", `${"echo fine\n".repeat(5_000)}git push --force`],
    ["in front of many", `git push --force\n${"echo fine\n".repeat(5_000)}`],
    ["behind blanks and a comment", `${" ".repeat(3_000)}# nothing\n${"\n".repeat(3_000)}git push --force`],
    ["inside of one long command", `sh -c '${"true; ".repeat(2_000)}git push --force'`],
  ])("begins with the part that the rule matched, %s, and has all of the call", (_where, command) => {
    const text = asked({ command });
    expect(text.slice(0, 160)).toContain("git push --force");
    expect(text.slice(0, 200)).toContain("(rule: git push *)");
    expect(text).toContain(command);
  });

  it("begins with the words of the rule inside of a long argument", () => {
    const text = asked({ command: `cat ${"/x".repeat(2_000)}/secrets.txt` });
    expect(text.slice(0, 200)).toContain("/secrets.txt");
  });

  it("says in a cut event how to read all of it", () => {
    const text = asked({ command: `${"echo fine\n".repeat(5_000)}git push --force` });
    const shown = shownQuestion("s-1", text);
    expect(shown.length).toBeLessThanOrEqual(MAX_SHOWN_CHARS);
    expect(shown).toContain(`of ${text.length} characters are shown`);
    expect(shown).toMatch(/longhaul questions s-1$/);
    expect(shownQuestion("s-1", "short")).toBe("short");
  });
});
