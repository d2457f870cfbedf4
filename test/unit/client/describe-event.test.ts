import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { eventData } from "../../../activities/store/event-data.ts";
import type { EventType, SessionEvent } from "../../../activities/store/event.ts";
import { describeEvent } from "../../../client/view/describe-event.ts";
import { sources } from "../../architecture/sources.ts";

type Shape = z.core.JSONSchema.JSONSchema;

/** Any value that a JSON schema of an event's data allows. */
function valueOf(shape: Shape): fc.Arbitrary<unknown> {
  if (shape.anyOf !== undefined) return fc.oneof(...(shape.anyOf as Shape[]).map(valueOf));
  if (Array.isArray(shape.type))
    return fc.oneof(...(shape.type as string[]).map((type) => valueOf({ type } as Shape)));
  if (shape.const !== undefined) return fc.constant(shape.const);
  if (shape.enum !== undefined) return fc.constantFrom(...shape.enum);
  if (shape.type === "string") return fc.string({ unit: "binary" });
  if (shape.type === "number")
    return fc.oneof(fc.nat({ max: 3 }), fc.double({ min: 0, max: 1e15, noNaN: true }));
  if (shape.type === "boolean") return fc.boolean();
  if (shape.type === "null") return fc.constant(null);
  if (shape.type === "array") return fc.array(valueOf(shape.items as Shape), { maxLength: 4 });
  if (shape.type !== "object") return fc.jsonValue();
  const fields = Object.entries(shape.properties ?? {}).map(([name, field]) => [
    name,
    valueOf(field as Shape),
  ]);
  return fc.record(Object.fromEntries(fields) as Record<string, fc.Arbitrary<unknown>>, {
    requiredKeys: shape.required ?? [],
  });
}

const types = Object.keys(eventData) as EventType[];

const anyEvent = fc.oneof(
  ...types.map((type) =>
    valueOf(z.toJSONSchema(eventData[type], { io: "input" })).map((data) => {
      const common = {
        seq: 1,
        sessionId: "s",
        epoch: 1,
        step: 1,
        attempt: 1,
        at: "2026-01-02T03:04:05.000Z",
      };
      return { ...common, type, data } as SessionEvent;
    }),
  ),
);

describe("an event in words", () => {
  it("is whole lines of text that steer no terminal, whatever the event carries", () => {
    fc.assert(
      fc.property(anyEvent, (event) => {
        for (const { text, facts = "", mark = "" } of describeEvent(event)) {
          expect(text + facts).not.toBe("");
          // oxlint-disable-next-line no-control-regex -- control characters are what this is about
          expect(text + facts + mark).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it("names only others than the owner, and those who wrote if earlier events say it", () => {
    const common = { seq: 1, sessionId: "s", epoch: 1, step: 1, attempt: 1, at: "" };
    const acted = { ...common, type: "person:acted", data: { action: "pull", by: "bob" } } as const;
    expect(describeEvent(acted)).toEqual([{ tone: "people", mark: "▸", text: "bob: pull" }]);
    expect(describeEvent(acted, { owner: "bob" })).toEqual([]);
    const when = { firstQueuedAt: "", lastQueuedAt: "" };
    const data = { count: 1, ids: ["m"], coalesced: false, text: "Hi.", ...when };
    const read = { ...common, type: "message:dequeued", data } as const;
    expect(describeEvent(read)).toMatchObject([{ text: "you: Hi." }]);
    expect(describeEvent(read, { senders: new Map([["m", "bob"]]) })).toMatchObject([{ text: "bob: Hi." }]);
  });

  it("is worded in one place: no other file that shows events has the same words", () => {
    const views = sources(/^client\/(view|render|report|screen|serve|watch)\/.*\.(ts|js|html)$/);
    const isOwn = (path: string) => /^client\/view\/describe-(event|sandbox)\.ts$/.test(path);
    const own = views
      .filter(({ path }) => isOwn(path))
      .map(({ text }) => text)
      .join("\n");
    const words = [...own.replaceAll(/^(import|\} from) .*/gm, "").matchAll(/"[^"\n]*"|`[^`]*`/g)]
      .flatMap(([text]) => text.slice(1, -1).split(/\$\{[^}]*\}/))
      .map((text) => text.trim())
      .filter((text) => (text.match(/\p{L}+/gu) ?? []).length > 3);
    expect(words.length).toBeGreaterThan(30);
    const again = views
      .filter(({ path }) => !isOwn(path))
      .flatMap(({ path, text }) =>
        words.filter((part) => text.includes(part)).map((part) => `${path}: ${part}`),
      );
    expect(again).toEqual([]);
  });
});
