/** A consumer's view of the package: packed, installed, type-checked and run. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { installPacked } from "../../support/packed-package.ts";

const USE = `
import { connect, describeEvent, ServiceMissing, type Event, type Longhaul, type Sentence } from "longhaul/client";

export const textOf = (event: Event): string => (event.type === "llm:response" ? event.data.content : event.type);

export async function follow(client: Longhaul, id: string): Promise<number | null> {
  for await (const event of client.events(id, { from: 3 })) {
    const sentences: readonly Sentence[] = describeEvent(event, { owner: "alice" });
    console.log(event.seq, textOf(event), sentences.map(({ mark = "", text }) => mark + text));
  }
  // @ts-expect-error there is no such field
  void (await client.status(id)).nothing;
  return (await client.status(id)).costUsd;
}

const common = { seq: 1, sessionId: "s", epoch: 1, step: 1, attempt: 1, at: "2026-01-02T03:04:05.000Z" };
console.log(describeEvent({ ...common, type: "person:acted", data: { action: "pull", by: "bob" } })[0]?.text);

try {
  await connect({ databaseUrl: "postgres://nobody@127.0.0.1:1/none" });
} catch (error) {
  console.log(error instanceof ServiceMissing);
}
`;

test("a project that installs the tarball type-checks and runs", { timeout: 600_000 }, () => {
  const consumer = installPacked();
  onTestFinished(() => consumer.remove());
  writeFileSync(join(consumer.folder, "use.ts"), USE);
  consumer.compile("use.ts");
  expect(consumer.run(process.execPath, ["use.js"])).toBe("bob: pull\ntrue\n");
});
