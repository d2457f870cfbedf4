import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Guidance } from "../../../activities/contract/guidance.ts";
import {
  accept,
  createInbox,
  drain,
  MAX_QUEUE_BYTES,
  MAX_WAITING,
  messageRefusal,
  tooMuch,
  waiting,
} from "../../../workflows/inbox.ts";

const item = (id: string, text = "hello"): Guidance => ({
  id,
  parts: [{ type: "text", text }],
  queuedAt: "2026-11-21T12:00:00Z",
});

describe("the inbox", () => {
  it("accepts an id once, also after it was drained", () => {
    const inbox = createInbox([], 0, []);
    expect(accept(inbox, item("a"))).toBe(true);
    expect(accept(inbox, item("a"))).toBe(false);
    expect(drain(inbox).guidance.map(({ id }) => id)).toEqual(["a"]);
    expect(accept(inbox, item("a"))).toBe(false);
    expect(waiting(inbox)).toBe(0);
  });

  it("knows the ids that an earlier run has seen", () => {
    expect(accept(createInbox([], 0, ["a"]), item("a"))).toBe(false);
  });

  it("refuses an update that is empty or exceeds the limit, but not a known id", () => {
    const inbox = createInbox([], MAX_WAITING, ["known"]);
    expect(messageRefusal(inbox, { text: "one more" })).toContain(String(MAX_WAITING));
    expect(messageRefusal(inbox, { id: "known", text: "again" })).toBeUndefined();
    expect(messageRefusal(createInbox([], 0, []), { text: "  " })).toBeDefined();
  });

  it("splits a long list into bounded ones, in order and without loss", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 300 }), (sizes) => {
        const inbox = createInbox(
          sizes.map((size, index) => item(`m${index}`, "x".repeat(size))),
          0,
          [],
        );
        const lists = tooMuch(inbox);
        if (!lists) return inbox.queue.length <= MAX_WAITING;
        const inOrder = lists.flat().map(({ id }) => id);
        expect(inOrder).toEqual(inbox.queue.map(({ id }) => id));
        return lists.every((list) => Buffer.byteLength(JSON.stringify(list)) <= MAX_QUEUE_BYTES + 3_000);
      }),
    );
  });
});
