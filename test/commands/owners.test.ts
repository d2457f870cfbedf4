import { expect, test } from "vitest";
import { emptyFolder, longhaul, untilStatus } from "../support/commands/longhaul.ts";

const as = (user: string) => ({ environment: { LONGHAUL_USER: user } });

test("a session belongs to its starter, and others who send or take something are named", async () => {
  const started = await longhaul(["start", "run: echo hi > a.txt\nsay: Done."], as("alice"));
  expect(started).toMatchObject({ code: 0 });
  const id = started.out.trim();
  expect((await untilStatus(id, ({ endedAt }) => endedAt !== null)).owner).toBe("alice");

  const listed = async (user: string, ...flags: string[]) =>
    (await longhaul(["list", "--json", ...flags], as(user))).out.includes(id);
  expect(await listed("alice")).toBe(true);
  expect(await listed("bob")).toBe(false);
  expect(await listed("bob", "--all")).toBe(true);

  expect((await longhaul(["say", id, "say: More."], as("bob"))).code).toBe(0);
  await untilStatus(id, ({ endedAt, step, queue }) => endedAt !== null && step > 2 && queue.length === 0);
  expect((await longhaul(["pull", id, "out"], { ...as("bob"), cwd: emptyFolder() })).code).toBe(0);
  const watched = await longhaul(["watch", id]);
  const shown = watched.err + watched.out;
  expect(shown).toContain("▸ bob: say: More.");
  expect(shown).toContain("▸ bob: pull");
  expect((await longhaul(["messages", id])).out).toMatch(/── you .*bob/);

  const fork = (await longhaul(["fork", id, "--detach"], as("bob"))).out.trim();
  expect((await untilStatus(fork, () => true)).owner).toBe("alice");
});
