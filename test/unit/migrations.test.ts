import { readdirSync, readFileSync } from "node:fs";
import { generateDrizzleJson, generateMigration } from "drizzle-kit/api";
import { describe, expect, it } from "vitest";
import * as schema from "../../activities/store/schema/index.ts";

const FOLDER = new URL("../../activities/store/migrations/meta/", import.meta.url);

type Snapshot = Parameters<typeof generateMigration>[0];

function snapshots(): Snapshot[] {
  return readdirSync(FOLDER)
    .filter((name) => name.endsWith("_snapshot.json"))
    .toSorted()
    .map((name) => JSON.parse(readFileSync(new URL(name, FOLDER), "utf8")) as Snapshot);
}

describe("the snapshots of the migrations", () => {
  it("form a chain", () => {
    const all = snapshots();
    expect(all.slice(1).map((one) => one.prevId)).toEqual(all.slice(0, -1).map((one) => one.id));
  });

  it("end with the schema: no migration and no question is left", async () => {
    const newest = snapshots().at(-1);
    if (newest === undefined) throw new Error("There is no snapshot.");
    expect(await generateMigration(newest, generateDrizzleJson(schema, newest.id))).toEqual([]);
  });
});
