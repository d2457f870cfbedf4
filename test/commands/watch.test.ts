import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import {
  begin,
  finished,
  inTerminal,
  longhaul,
  starting,
  statusOf,
  temporal,
} from "../support/commands/longhaul.ts";

const lines = (out: string) =>
  out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { seq: number; type: string; data: Record<string, unknown> });

test("shows an ended session from its beginning, with its outcome's code and text", async () => {
  const id = await finished("run: echo hello\nsay: The end.");
  const { code, out, err } = await longhaul(["watch", id]);
  expect({ code, out }).toEqual({ code: 0, out: "The end.\n" });
  expect(err).toContain("echo hello");
});

test("--from SEQ shows later events, and prints one JSON event a line", async () => {
  const id = await finished("run: echo hello\nsay: The end.");
  const all = lines((await longhaul(["watch", id, "--json"])).out);
  expect(all[0]?.type).toBe("session:started");
  const middle = all[Math.floor(all.length / 2)]?.seq ?? 0;
  const rest = lines((await longhaul(["watch", id, "--json", "--from", String(middle)])).out);
  expect(rest.map(({ seq }) => seq)).toEqual(all.map(({ seq }) => seq).filter((seq) => seq > middle));
});

test("Ctrl-C detaches with 130, and the task continues", async () => {
  const id = await begin("run: sleep 100\nsay: Alone.");
  const watching = starting(["watch", id]);
  await eventually("something is shown", () => watching.err().includes("sleep 100"), 60_000);
  watching.kill("SIGINT");
  expect((await watching.ended).code).toBe(130);
  expect((await statusOf(id)).status).toBe("active");
  expect((await longhaul(["cancel", id])).code).toBe(0);
});

const ERASE = "\r\u001b[2K";

test("on a terminal one line is redrawn with a clock, the running command and its last output", async () => {
  const id = await begin(
    "run: for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 1; done; sleep 100\nsay: Alone.",
  );
  const watching = inTerminal(["watch", id], 100);
  await eventually("the last line of output is shown", () => watching.out().includes("› line 8"), 60_000);
  expect(watching.out()).toContain(ERASE);
  const status = stripVTControlCharacters(watching.out().split(ERASE).at(-1) ?? "");
  expect(status).toMatch(/^\d+:\d\d step 1  bash for i in .* \d+:\d\d › line 8  \d+ %/);
  expect(status.length).toBeLessThan(100);
  watching.kill("SIGTERM");
  await watching.ended;
  expect((await longhaul(["cancel", id])).code).toBe(0);
});

test("the final text is laid out on a terminal; narrow, colourless or piped it is unchanged", async () => {
  const id = await finished("say: **It** is `done`, and every one of its many words stays whole here.");
  const wide = await inTerminal(["watch", id], 80).ended;
  expect(wide.out).toContain("\u001b[1mIt\u001b[22m is \u001b[36mdone\u001b[39m, and every");
  const narrow = await inTerminal(["watch", id], 40).ended;
  expect(narrow.out).not.toContain(ERASE);
  expect(narrow.out).toContain("**It** is `done`, and every one of its\r\nmany words stays whole here.\r\n");
  const plain = await inTerminal(["watch", id], 80, { environment: { NO_COLOR: "1" } }).ended;
  expect(plain.out).not.toContain("\u001b");
  const piped = await longhaul(["watch", id]);
  expect(piped.out).toBe("**It** is `done`, and every one of its many words stays whole here.\n");
});

test("a wrong --from is 2", async () => {
  expect((await longhaul(["watch", "no-such-session", "--from", "x"])).code).toBe(2);
});

test("reports a missing worker at once", async () => {
  const environment = { LONGHAUL_TASK_QUEUE: `unserved-${process.pid}` };
  const { out } = await longhaul(["start", "say: Never."], { environment });
  const id = out.trim();
  const running = starting(["watch", id], { environment });
  await eventually(
    "it says so",
    () => running.err().includes("No worker serves the task queue unserved-"),
    60_000,
  );
  running.kill("SIGINT");
  expect((await running.ended).code).toBe(130);
  await (await temporal()).workflow.getHandle(id).terminate("the test is over");
});
