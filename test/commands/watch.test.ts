import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { begin, finished, longhaul, starting, statusOf } from "../support/commands/longhaul.ts";

const lines = (out: string) =>
  out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { seq: number; type: string; data: Record<string, unknown> });

test("shows a session that has ended from its beginning, with its outcome's code and text", async () => {
  const id = await finished("run: echo hello\nsay: The end.");
  const { code, out, err } = await longhaul(["watch", id]);
  expect({ code, out }).toEqual({ code: 0, out: "The end.\n" });
  expect(err).toContain("echo hello");
});

test("--from SEQ shows what came after it, and gives a JSON event a line", async () => {
  const id = await finished("run: echo hello\nsay: The end.");
  const all = lines((await longhaul(["watch", id, "--json"])).out);
  expect(all[0]?.type).toBe("session:started");
  const middle = all[Math.floor(all.length / 2)]?.seq ?? 0;
  const rest = lines((await longhaul(["watch", id, "--json", "--from", String(middle)])).out);
  expect(rest.map(({ seq }) => seq)).toEqual(all.map(({ seq }) => seq).filter((seq) => seq > middle));
});

test("Ctrl-C detaches with 130, and the task goes on", async () => {
  const id = await begin("run: sleep 100\nsay: Alone.");
  const watching = starting(["watch", id]);
  await eventually("something is shown", () => watching.err().includes("sleep 100"), 60_000);
  watching.kill("SIGINT");
  expect((await watching.ended).code).toBe(130);
  expect((await statusOf(id)).status).toBe("active");
  expect((await longhaul(["cancel", id])).code).toBe(0);
});

test("an unknown session is 5, a wrong --from is 2", async () => {
  expect(await longhaul(["watch", "no-such-session"])).toMatchObject({ code: 5, out: "" });
  expect((await longhaul(["watch", "no-such-session", "--from", "x"])).code).toBe(2);
});
