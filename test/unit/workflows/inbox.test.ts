import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { GuidanceDelivery, Guidance } from "../../../activities/contract/guidance.ts";
import {
  accept,
  addOlder,
  createInbox,
  drain,
  markStored,
  MAX_STORED_BYTES,
  MAX_WAITING,
  messageRefusal,
  nextToStore,
  oldestQueued,
  putBack,
  applyDelivery,
  waiting,
  withdraw,
  type Inbox,
} from "../../../workflows/inbox.ts";

const item = (id: string, text = "hello"): Guidance => ({
  id,
  parts: [{ type: "text", text }],
  queuedAt: "2026-11-21T12:00:00Z",
});
const ids = (items: readonly { readonly id: string }[]) => items.map(({ id }) => id);
const older = (...all: string[]) => all.map((id) => ({ id, tokens: 1 }));

/** These have arrived and are stored. */
function storedOf(...all: string[]): Inbox {
  const inbox = createInbox([], []);
  for (const id of all) accept(inbox, item(id));
  markStored(inbox, nextToStore(inbox));
  return inbox;
}

describe("the inbox", () => {
  it("accepts an id once, also after it was delivered", () => {
    const inbox = createInbox([], []);
    expect(accept(inbox, item("a"))).toBe(true);
    expect(accept(inbox, item("a"))).toBe(false);
    markStored(inbox, nextToStore(inbox));
    const drained = drain(inbox);
    expect(ids(drained)).toEqual(["a"]);
    applyDelivery(inbox, drained, { taken: ["a"] });
    expect(accept(inbox, item("a"))).toBe(false);
    expect(waiting(inbox)).toBe(0);
  });

  it("knows the ids that an earlier run has seen, and those that rows tell of", () => {
    const inbox = createInbox([], ["a"]);
    expect(accept(inbox, item("a"))).toBe(false);
    addOlder(inbox, older("b"));
    expect(accept(inbox, item("b"))).toBe(false);
    expect(waiting(inbox)).toBe(1);
  });

  it("refuses an update that is empty or exceeds the limit, but not a known id", () => {
    const inbox = createInbox([], ["known"]);
    addOlder(inbox, older(...Array.from({ length: MAX_WAITING }, (_, place) => `m${place}`)));
    expect(messageRefusal(inbox, { text: "one more" })).toContain(String(MAX_WAITING));
    expect(messageRefusal(inbox, { id: "known", text: "again" })).toBeUndefined();
    expect(messageRefusal(createInbox([], []), { text: "  " })).toBeDefined();
  });

  it("does not wait for what was delivered or withdrawn before it was stored again", () => {
    const inbox = createInbox([item("a"), item("b")], []);
    markStored(inbox, nextToStore(inbox), ["a"]);
    expect(ids(inbox.stored)).toEqual(["b"]);
  });

  it("forgets a message that its sender takes back, also while it is being stored", () => {
    const inbox = createInbox([item("a"), item("b")], []);
    const storing = nextToStore(inbox);
    expect(withdraw(inbox, "a")).toBe(true);
    markStored(inbox, storing);
    expect(withdraw(inbox, "b")).toBe(true);
    expect(withdraw(inbox, "b")).toBe(false);
    expect(waiting(inbox)).toBe(0);
  });

  it("shows people the oldest first, with their beginnings", () => {
    const inbox = storedOf("a", "b");
    accept(inbox, item("c", "x".repeat(9_000)));
    addOlder(inbox, older("first"));
    expect(ids(oldestQueued(inbox, 10))).toEqual(["first", "a", "b", "c"]);
    expect(ids(oldestQueued(inbox, 3))).toEqual(["first", "a", "b"]);
    expect(oldestQueued(inbox, 10).at(-1)?.text).toHaveLength(500);
  });

  it("gives an activity bounded lists, in order and without loss", () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3_000 }), { maxLength: 300 }), (sizes) => {
        const all = sizes.map((size, index) => item(`m${index}`, "x".repeat(size)));
        const inbox = createInbox(all, []);
        const lists: (readonly Guidance[])[] = [];
        while (inbox.arrived.length > 0) {
          const list = nextToStore(inbox);
          lists.push(list);
          markStored(inbox, list);
        }
        expect(lists.flat()).toEqual(all);
        expect(ids(inbox.stored)).toEqual(ids(all));
        return lists.every((list) => Buffer.byteLength(JSON.stringify(list)) <= MAX_STORED_BYTES + 3_000);
      }),
    );
  });
});

/** The table that the activities write, as the run sees it by their results. */
function createTable() {
  const rows: { readonly id: string; delivered: boolean }[] = [];
  const transcript: string[] = [];
  return {
    rows,
    transcript,
    add(id: string): void {
      if (!rows.some((row) => row.id === id)) rows.push({ id, delivered: false });
    },
    deliver(room: number): GuidanceDelivery {
      const open = rows.filter(({ delivered }) => !delivered);
      const taken = open.slice(0, room);
      for (const row of taken) row.delivered = true;
      transcript.push(...ids(taken));
      return { taken: ids(taken), left: older(...ids(open.slice(room))) };
    },
  };
}

const WHAT = fc.oneof(
  { weight: 4, arbitrary: fc.constant("message" as const) },
  { weight: 1, arbitrary: fc.constant("message again" as const) },
  { weight: 2, arbitrary: fc.constant("store" as const) },
  { weight: 2, arbitrary: fc.constant("stored" as const) },
  { weight: 1, arbitrary: fc.constant("new run" as const) },
  { weight: 3, arbitrary: fc.record({ room: fc.integer({ min: 0, max: 3 }) }) },
  { weight: 1, arbitrary: fc.record({ lostWith: fc.integer({ min: 0, max: 3 }) }) },
);

describe("a run and its queue", () => {
  it(
    "agree in the end: each message is delivered once, in order, none awaited in vain",
    { tags: ["invariant-6"] },
    () => {
      fc.assert(
        fc.property(
          fc.array(WHAT, { maxLength: 40 }),
          fc.array(fc.boolean(), { maxLength: 10 }),
          (events, moments) => {
            const early = [...moments];
            const table = createTable();
            let inbox = createInbox([], []);
            let storing: readonly Guidance[] | undefined;
            let said = 0;
            const store = () => {
              for (const { id } of storing ?? []) table.add(id);
            };
            const stored = () => {
              store();
              if (storing) markStored(inbox, storing);
              storing = undefined;
            };
            const storeAll = () => {
              stored();
              while (inbox.arrived.length > 0) {
                storing = nextToStore(inbox);
                stored();
              }
            };
            for (const event of events) {
              if (event === "message") accept(inbox, item(`m${said++}`));
              else if (event === "message again") accept(inbox, item(`m${Math.max(0, (said ||= 1) - 2)}`));
              else if (event === "store") storing ??= nextToStore(inbox);
              else if (event === "stored") stored();
              else if (event === "new run") {
                storeAll();
                const open = table.rows.filter(({ delivered }) => !delivered);
                inbox = createInbox([], [...inbox.seen]);
                addOlder(inbox, older(...ids(open)));
              } else {
                storeAll();
                const drained = drain(inbox);
                // A message that comes during the step is stored before or after the step delivers.
                for (const isBefore of early.splice(0, 2)) {
                  accept(inbox, item(`m${said++}`));
                  storing ??= nextToStore(inbox);
                  if (isBefore) store();
                }
                if ("room" in event) applyDelivery(inbox, drained, table.deliver(event.room));
                else {
                  table.deliver(event.lostWith);
                  putBack(inbox, drained);
                }
              }
            }
            for (let steps = 0; waiting(inbox) > 0; steps += 1) {
              expect(steps).toBeLessThan(200);
              storeAll();
              applyDelivery(inbox, drain(inbox), table.deliver(2));
            }
            expect(table.transcript).toEqual(Array.from({ length: said }, (_, place) => `m${place}`));
          },
        ),
      );
    },
  );
});
