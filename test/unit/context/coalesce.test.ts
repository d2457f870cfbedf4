import { describe, expect, it } from "vitest";
import { coalesce } from "../../../activities/step/guidance.ts";
import { MAX_GUIDANCE_CHARS, partsRefusal } from "../../../activities/contract/guidance.ts";
import type { UserPart } from "../../../activities/contract/message.ts";

const text = (value: string): UserPart => ({ type: "text", text: value });
const image: UserPart = { type: "file", mediaType: "image/png", data: "@blob:1" };
const queued = (id: string, ...parts: UserPart[]) => ({ id, parts, queuedAt: `2026-01-01T00:00:0${id}Z` });

describe("coalesce", () => {
  it("gives nothing for an empty queue", { tags: ["case-19"] }, () => {
    expect(coalesce([])).toBeUndefined();
  });

  it("leaves one message unchanged", { tags: ["case-19"] }, () => {
    expect(coalesce([queued("1", text("go"), image)])).toEqual({
      parts: [text("go"), image],
      ids: ["1"],
      firstQueuedAt: "2026-01-01T00:00:01Z",
      lastQueuedAt: "2026-01-01T00:00:01Z",
      coalesced: false,
    });
  });

  it("joins two as First and Also, with ids and both times", { tags: ["case-19"] }, () => {
    expect(coalesce([queued("1", text("one")), queued("2", text("two"))])).toEqual({
      parts: [text("First: one\n\nAlso: two")],
      ids: ["1", "2"],
      firstQueuedAt: "2026-01-01T00:00:01Z",
      lastQueuedAt: "2026-01-01T00:00:02Z",
      coalesced: true,
    });
  });

  it("numbers three and more", { tags: ["case-19"] }, () => {
    const three = ["1", "2", "3"].map((id) => queued(id, text(`m${id}`)));
    expect(coalesce(three)?.parts).toEqual([text("[1]: m1\n\n[2]: m2\n\n[3]: m3")]);
  });

  it("keeps media between texts in order", { tags: ["case-19"] }, () => {
    const parts = coalesce([
      queued("1", text("see"), image, text("there")),
      queued("2", image),
      queued("3", text("x")),
    ])?.parts;
    expect(parts).toEqual([text("[1]: see"), image, text("there\n\n[2]:"), image, text("[3]: x")]);
  });

  it("refuses empty text with a reason, but not a file alone", { tags: ["case-19"] }, () => {
    expect(partsRefusal([])).toMatch(/empty/);
    expect(partsRefusal([text(" \n")])).toMatch(/empty/);
    expect(partsRefusal([image])).toBeUndefined();
    expect(partsRefusal([text("go")])).toBeUndefined();
  });

  it("refuses more than 1 Mi characters, with a remedy", () => {
    expect(partsRefusal([text("x".repeat(MAX_GUIDANCE_CHARS))])).toBeUndefined();
    expect(partsRefusal([text("x".repeat(MAX_GUIDANCE_CHARS)), text("y")])).toMatch(/1048577.*file/);
  });
});
