import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  guidanceBytes,
  idOf,
  isRoundMessage,
  REVIEW_MESSAGE_ID,
  roundMessageId,
  toGuidanceItems,
  MAX_ITEM_BYTES,
  partsOf,
} from "../../../activities/contract/guidance.ts";
import { isMessageId } from "../../../client/sessions/guidance.ts";
import { createInbox, nextToStore, latestIds } from "../../../workflows/inbox.ts";

const AT = "2026-11-21T12:00:00.000Z";
const words = (items: ReturnType<typeof toGuidanceItems>) =>
  items.flatMap((item) => item.parts.map((part) => (part.type === "text" ? part.text : part.data))).join("");

describe("a person's message", () => {
  it("is a bare string, a text or parts, and nothing else", () => {
    expect(partsOf("stop")).toEqual([{ type: "text", text: "stop" }]);
    expect(partsOf({ text: "stop" })).toEqual([{ type: "text", text: "stop" }]);
    const file = { type: "file", mediaType: "image/png", data: "@blob:00" };
    expect(partsOf({ text: "look", parts: [file] })).toEqual([{ type: "text", text: "look" }, file]);
    expect(partsOf({ parts: file })).toEqual([file]);
    for (const nonsense of [
      undefined,
      null,
      7,
      [],
      {},
      { parts: [{ type: "file" }] },
      { parts: "x" },
      { text: " ", parts: [7] },
    ])
      expect(partsOf(nonsense)).toBeUndefined();
  });

  it("may have images in other programs' formats, and reports unreadable ones", () => {
    const data = "data:image/png;base64,iVBORw0KGgo=";
    expect(partsOf({ text: "look", parts: [{ type: "image", image: data }] })).toEqual([
      { type: "text", text: "look" },
      { type: "file", mediaType: "image/png", data },
    ]);
    expect(partsOf({ parts: [{ type: "image", image: "iVBORw0KGgo=" }] })).toEqual([
      { type: "file", mediaType: "image/*", data: "iVBORw0KGgo=" },
    ]);
    expect(partsOf({ parts: [{ type: "file", data }] })?.[0]).toMatchObject({ mediaType: "image/png" });
    const [words, left, other] = partsOf({ text: "look", parts: [{ type: "image_url" }, 7] }) ?? [];
    expect(words).toEqual({ type: "text", text: "look" });
    expect(left).toMatchObject({
      text: expect.stringMatching(/type "image_url".*left out.*base64/) as string,
    });
    expect(other).toMatchObject({ text: expect.stringMatching(/^\[A part came/) as string });
  });

  it("names the first of many unreadable parts and counts the rest, however many came", () => {
    const parts = partsOf({ text: "look", parts: Array.from({ length: 900_000 }, () => 7) }) ?? [];
    expect(parts).toHaveLength(22);
    expect(parts.at(-1)).toEqual({
      type: "text",
      text: "[899980 more parts could not be read and were left out.]",
    });
    expect(guidanceBytes(toGuidanceItems("a", parts, AT))).toBeLessThan(MAX_ITEM_BYTES);
  });

  it("is cleaned in every field with text: texts, ids, names, media types", () => {
    const odd = "a\0b\ud83d\u001b[31m";
    const file = { type: "file", mediaType: `image/${odd}`, data: `@blob:${odd}`, filename: odd };
    const sent = { id: odd, text: odd, parts: [{ type: "text", text: odd }, file] };
    const texts = [idOf(sent), ...(partsOf(sent) ?? []).flatMap((part) => Object.values(part) as string[])];
    expect(texts.filter((text) => text?.includes("b"))).toHaveLength(6);
    for (const text of texts) {
      expect(text?.isWellFormed()).toBe(true);
      // oxlint-disable-next-line no-control-regex -- control characters are what this is about
      expect(text).not.toMatch(/[\0\u001b]/);
    }
  });

  it("is cut between characters if an id or a name is too long", () => {
    const long = `a${"🎈".repeat(200)}`;
    const [file] = partsOf({ parts: [{ type: "file", data: "x", mediaType: long, filename: long }] }) ?? [];
    const names = [idOf({ id: long }), ...Object.values(file ?? {})] as string[];
    for (const name of names.filter((other) => other.startsWith("a"))) {
      expect(name.isWellFormed()).toBe(true);
      expect(name).toHaveLength(199);
    }
  });

  it("has a bounded sender's id; an invalid one is ignored", () => {
    expect(idOf({ id: "x".repeat(1_000) })).toHaveLength(200);
    expect(idOf({ id: "" })).toBeUndefined();
    expect(idOf({ id: 7 })).toBeUndefined();
  });

  it("cannot have the id of a follower's round, in whatever spelling", () => {
    const own = roundMessageId(1);
    expect(isRoundMessage(own)).toBe(true);
    expect(isMessageId(own)).toBe(false);
    const pieces = toGuidanceItems(own, [{ type: "text", text: "x".repeat(40_000) }], AT);
    expect(pieces.length).toBeGreaterThan(1);
    for (const { id } of pieces) {
      expect(isRoundMessage(id)).toBe(true);
      for (const spelled of [id, `\u001b[1m${id}`, id.replace("@", "\u001b[0m@")])
        expect(idOf({ id: spelled })).toBeUndefined();
    }
    for (const id of ["follow-1", "follow", "Follow@1", "follow@", "a follow@1"]) {
      expect(isRoundMessage(id)).toBe(false);
      expect(idOf({ id })).toBe(id);
    }
  });

  it("cannot have the id of the message with which a review begins", () => {
    expect(isMessageId(REVIEW_MESSAGE_ID)).toBe(false);
    const pieces = toGuidanceItems(REVIEW_MESSAGE_ID, [{ type: "text", text: "x".repeat(40_000) }], AT);
    expect(pieces.length).toBeGreaterThan(1);
    for (const { id } of [...pieces, { id: `\u001b[1m${REVIEW_MESSAGE_ID}` }])
      expect(idOf({ id })).toBeUndefined();
    expect(idOf({ id: "review@10" })).toBe("review@10");
  });

  it("loses fields that it must not set: the provider's own options, unknown fields", () => {
    const message = JSON.parse(
      '{"__proto__":{"admin":true},"constructor":7,"parts":[{"type":"text","text":"hi","providerOptions":{"openai":{"itemId":"x"}},"__proto__":{"role":"system"}}]}',
    ) as unknown;
    expect(partsOf(message)).toEqual([{ type: "text", text: "hi" }]);
    expect(Object.keys(partsOf(message)?.[0] ?? {})).toEqual(["type", "text"]);
    expect(({} as { admin?: unknown }).admin).toBeUndefined();
  });

  it.each(["__proto__", "constructor", "toString"])("may have the id %s", (id) => {
    expect(idOf(JSON.parse(`{"id":${JSON.stringify(id)},"text":"x"}`))).toBe(id);
    expect(toGuidanceItems(id, [{ type: "text", text: "x" }], AT)[0]?.id).toBe(id);
  });

  it(
    "is one item while it is small, and is split without loss where it is not",
    { tags: ["R44", "R49"] },
    () => {
      const text = fc.oneof(
        fc.string({ unit: fc.constantFrom("a", "é", "汉", "😀", "\u0001", "\ud800"), maxLength: 300 }),
        fc
          .constantFrom("\u0001", "\\", "汉", "😀", "\ud800")
          .chain((unit) => fc.integer({ min: 0, max: 20_000 }).map((count) => unit.repeat(count))),
      );
      fc.assert(
        fc.property(fc.array(text, { minLength: 1, maxLength: 4 }), (texts) => {
          const items = toGuidanceItems(
            "id",
            texts.map((part) => ({ type: "text", text: part })),
            AT,
          );
          expect(words(items)).toBe(texts.join(""));
          expect(new Set(items.map((item) => item.id)).size).toBe(items.length);
          for (const item of items) {
            const bytes = Buffer.byteLength(JSON.stringify(item));
            expect(bytes).toBeLessThanOrEqual(MAX_ITEM_BYTES + 200);
            expect(bytes).toBeLessThanOrEqual(guidanceBytes([item]) + 60);
          }
        }),
        { numRuns: 25 },
      );
    },
  );

  it("reports a file that is too large to carry", () => {
    const file = { type: "file", mediaType: "image/png", data: "A".repeat(1_000_000) } as const;
    expect(words(toGuidanceItems("id", [file], AT))).toMatch(
      /image\/png, 1000000 characters.*was not accepted/,
    );
  });
});

describe("items taken from the inbox", () => {
  const many = (text: string) =>
    Array.from({ length: 400 }, (_value, index) => ({
      id: `${"i".repeat(190)}${index}`,
      parts: [{ type: "text" as const, text }],
      queuedAt: AT,
    }));

  it.each(["x".repeat(200), "汉".repeat(5_000)])(
    "are few enough for an activity, and their ids for the next run",
    (text) => {
      const queue = many(text);
      const inbox = createInbox(
        queue,
        queue.map((item) => item.id),
      );
      const shown = nextToStore(inbox);
      expect(shown).toEqual(queue.slice(0, shown.length));
      expect(shown.length).toBeGreaterThan(0);
      expect(Buffer.byteLength(JSON.stringify(shown))).toBeLessThan(32_000);
      const ids = latestIds(inbox);
      expect(ids.at(-1)).toBe(queue.at(-1)?.id);
      expect(Buffer.byteLength(JSON.stringify(ids))).toBeLessThan(17_000);
    },
  );
});
