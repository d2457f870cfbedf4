/** What goes first when bases and stopped sandboxes do not fit into a host's part of the disk. */
import { expect, it } from "vitest";
import { chooseEvictions, type KeptItem } from "../../../activities/workspace/host-disk.ts";

const item = (kind: KeptItem["kind"], id: string, changes: Partial<KeptItem> = {}): KeptItem => ({
  kind,
  id,
  bytes: 10,
  idleMs: 1_000,
  sessions: [],
  stays: false,
  ...changes,
});
const chosen = (items: readonly KeptItem[], bytes: number, most = 100) =>
  chooseEvictions(items, { bytes, sandboxes: most }).map(({ item: { id } }) => id);

it("nothing goes while all fits", () => {
  expect(chosen([item("base", "b"), item("sandbox", "s")], 20)).toEqual([]);
});

it("what was not used for longest goes first, and no more than must", () => {
  const items = [
    item("sandbox", "new", { idleMs: 1 }),
    item("sandbox", "old", { idleMs: 30 }),
    item("base", "older", { idleMs: 40 }),
    item("sandbox", "newer", { idleMs: 2 }),
  ];
  expect(chosen(items, 30)).toEqual(["older"]);
  expect(chosen(items, 15)).toEqual(["older", "old", "newer"]);
});

it("a base goes only after all that stands on it, however old it is", () => {
  const base = item("base", "b", { idleMs: 99, sessions: ["s", "t"] });
  expect(
    chosen([base, item("sandbox", "s", { idleMs: 9 }), item("sandbox", "t", { idleMs: 5 })], 10),
  ).toEqual(["s", "t"]);
  expect(chosen([base, item("sandbox", "s"), item("sandbox", "t")], 0)).toEqual(["s", "t", "b"]);
  // One that runs is none that could go.
  expect(chosen([base, item("sandbox", "s")], 0)).toEqual(["s"]);
});

it("what is in use or the only copy stays, also if nothing fits then", () => {
  expect(chosen([item("sandbox", "s", { stays: true }), item("base", "b", { stays: true })], 0)).toEqual([]);
});

it("of too many stopped sandboxes the oldest go, also if the bytes fit", () => {
  const items = [
    item("base", "b", { idleMs: 99 }),
    item("sandbox", "new", { idleMs: 1 }),
    item("sandbox", "old", { idleMs: 9 }),
    item("sandbox", "unsaved", { idleMs: 50, stays: true }),
  ];
  expect(chosen(items, 40, 2)).toEqual(["old"]);
  expect(chosen(items, 30, 2)).toEqual(["b", "old"]);
  expect(chooseEvictions(items, { bytes: 30, sandboxes: 2 }).map(({ isForCount }) => isForCount)).toEqual([
    false,
    true,
  ]);
  expect(chosen(items, 40, 0)).toEqual(["old", "new"]);
});
