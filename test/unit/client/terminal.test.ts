/** Text that the agent chooses, on a person's terminal. */
import { describe, expect, it } from "vitest";
import { harmless, harmlessJson, steered, visible } from "../../../client/console/format.ts";

/** Sets the clipboard, moves, deletes lines, C1's introducer, a bell, two that reorder what is shown. */
const HOSTILE = "a\u001b]52;c;cm0gLXJm\u0007b\u001b[2Kc\u009b2Jd\u0007e\u202ef\u2067g\u200fh\u007fi\rj";
// oxlint-disable-next-line no-control-regex -- control characters are what this is about
const STEERING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

describe("text with terminal sequences", () => {
  it("is removed from what people read, and characters that reorder are codes", () => {
    expect(harmless(HOSTILE)).toBe("abc2Jde\\u202ef\\u2067g\\u200fhi\nj");
  });

  it("is removed around our own colours", () => {
    expect(steered(`\u001b[1mbold\u001b[22m ${HOSTILE}`)).toBe(
      "\u001b[1mbold\u001b[22m abc2Jde\\u202ef\\u2067g\\u200fhi\nj",
    );
  });

  it("is shown as codes if nothing may be lost", () => {
    expect(visible(HOSTILE)).toBe(
      "a\\x1b]52;c;cm0gLXJm\\x07b\\x1b[2Kc\\x9b2Jd\\x07e\\u202ef\\u2067g\\u200fh\\x7fi\\x0dj",
    );
  });

  it("is escaped in JSON, whose value is unchanged", () => {
    const json = harmlessJson(JSON.stringify({ text: HOSTILE }, null, 2));
    expect(json).not.toMatch(STEERING);
    expect(JSON.parse(json)).toEqual({ text: HOSTILE });
  });
});
