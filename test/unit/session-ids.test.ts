/** No id that anyone may choose is the name of something that we derive from another id. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toChildId } from "../../activities/delegates/open-delegate.ts";
import { batchWorkflowId } from "../../activities/contract/batch.ts";
import { probeId, unlikeChosenId } from "../../activities/contract/session-ids.ts";
import { sandboxName, DEFAULT_EGRESS_NAME, cacheName } from "../../activities/sandbox/docker/profile.ts";
import { createSessionId, parseSessionId } from "../../client/sessions/session-id.ts";
import { itemSessionId } from "../../client/batch/batch-file.ts";

const chars = "aAsScCeE019.-_Z".split("");
/** Like ids, and often like derived ones. */
const word = fc.oneof(
  fc.string({ unit: fc.constantFrom(...chars), minLength: 1, maxLength: 20 }),
  fc.constantFrom("cache-0123456789abcdef", "egress", "bob", "BOB.s1c0", "a.s12c0e3", "nightly", "S1C0"),
);
const number = fc.nat({ max: 999 });
const time = fc
  .date({ noInvalidDate: true, min: new Date(0), max: new Date("2100-01-01") })
  .map((date) => `${date.toISOString().slice(0, 19)}Z`);
const scheduled = fc.tuple(word, time).map(([name, at]) => `${name}-${at}`);
const delegate = fc
  .tuple(fc.oneof(word, scheduled), number, number, fc.integer({ min: 1, max: 99 }))
  .map(([sessionId, step, index, epoch]) => toChildId({ sessionId, step, index, epoch }));
const derivedIds = fc.oneof(scheduled, delegate, word.map(batchWorkflowId));
const mayChoose = (id: string) => unlikeChosenId(id) === undefined;

describe("an id that can be chosen", () => {
  it("is never a delegate's, a scheduled session's or a batch's", () => {
    fc.assert(fc.property(derivedIds, (id) => !mayChoose(id)));
  });

  it("is never that of a sandbox which doctor or a test of MCP servers makes and removes", () => {
    fc.assert(
      fc.property(word, fc.oneof(word, fc.uuid()), (program, unique) => !mayChoose(probeId(program, unique))),
    );
  });

  it("gives its sandbox no name that another session's, a cache or the proxy has", () => {
    const chosen = word.filter(mayChoose);
    fc.assert(
      fc.property(chosen, fc.oneof(derivedIds, chosen), word, (id, other, key) => {
        if (id !== other) expect(sandboxName(id)).not.toBe(sandboxName(other));
        for (const any of [id, other])
          expect([cacheName(key), DEFAULT_EGRESS_NAME]).not.toContain(sandboxName(any));
      }),
    );
    const started = "nightly-2026-11-26T02:00:00Z";
    expect(mayChoose(sandboxName(started).slice("longhaul-".length))).toBe(false);
  });

  it("is each that we propose, and an ordinary one of a person", () => {
    for (let i = 0; i < 100; i++) expect(mayChoose(createSessionId())).toBe(true);
    for (const id of [
      "fix-login",
      "a",
      "v1.2",
      "x.s1",
      "x-s1c0",
      "build-0123456789ab",
      itemSessionId("b", "i", 2),
    ])
      expect(parseSessionId(id)).toBe(id);
    for (const id of ["BOB.s1c0", "a.s2c10e3", "a.S1C0"])
      expect(() => parseSessionId(id)).toThrow("cannot be a session id");
  });
});
