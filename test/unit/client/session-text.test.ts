import { describe, expect, it } from "vitest";
import {
  cutToBytes,
  staticSummary,
  taskDetails,
  taskSummary,
} from "../../../client/sessions/start-session.ts";
import { createSessionId, parseSessionId } from "../../../client/sessions/session-id.ts";

const facts = { id: "s", model: "m", maxSteps: 5, contextWindow: 8_000, workspace: undefined };

describe("the Web UI's text of a task", () => {
  it("is one line of at most 180 bytes, cut between characters", { tags: ["U25"] }, () => {
    const summary = taskSummary(`🎉🎉\n\n${"ä".repeat(500)}`);
    expect(summary).not.toContain("\n");
    expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(180);
    expect(summary.isWellFormed()).toBe(true);
    expect(cutToBytes("🎉🎉", 7)).toBe("🎉…");
  });

  it("appears as typed in the summary, and fits there with its escapes", { tags: ["U25"] }, () => {
    expect(staticSummary("Fix [x](http://y) in __init__.py")).toBe(
      String.raw`Fix \[x\]\(http:\//y\) in \_\_init\_\_.py`,
    );
    for (const sign of ["_", "ä[", "🎉*"]) {
      const summary = staticSummary(sign.repeat(200));
      expect(Buffer.byteLength(summary)).toBeLessThanOrEqual(180);
      expect(summary).toMatch(/[^\\]…$/);
    }
  });

  it("contains no image, link, code or HTML", { tags: ["U25"] }, () => {
    const details = taskDetails({ ...facts, task: "![x](http://y/z.png) `code` <img src=x>\n# big [l](u)" });
    const task = details.slice(details.indexOf(">"));
    expect(task).not.toMatch(/(?<!\\)[`[\]()!#<]|:\/\//);
    expect(Buffer.byteLength(taskDetails({ ...facts, task: "`".repeat(100_000) }))).toBeLessThan(20_000);
  });
});

describe("session ids", () => {
  it("are short, and valid names of a workflow, a container and a folder", () => {
    for (let i = 0; i < 200; i++) expect(parseSessionId(createSessionId())).toMatch(/^[a-z]+-[a-z]+-\w{4}$/);
  });

  it("are refused if they would leave a folder or break a name", () => {
    for (const id of ["", "..", "a/b", "-x", "a b", "x".repeat(65), "ä"]) {
      expect(() => parseSessionId(id)).toThrow(expect.objectContaining({ exitCode: 2 }));
    }
  });
});
