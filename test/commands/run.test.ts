import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { eventually } from "../support/eventually.ts";
import { emptyFolder, longhaul, starting, untilStatus } from "../support/commands/longhaul.ts";

test("shows the work on stderr, the final text alone on stdout, and writes the files", async () => {
  const cwd = emptyFolder();
  const { code, out, err } = await longhaul(["run", "run: echo made > made.txt\nsay: It is made."], { cwd });
  expect({ code, out }).toEqual({ code: 0, out: "It is made.\n" });
  expect(err).toContain("echo made > made.txt");
  // The services were not started by this command.
  expect(err).not.toContain("longhaul down");
  const folder = /Files \(1\) are in (.*)$/m.exec(err)?.[1] ?? "";
  expect(readFileSync(join(folder, "made.txt"), "utf8")).toBe("made\n");
});

test("ends with the task's outcome although the files cannot be written, and says where they are", async () => {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, ".longhaul"), "");
  const { code, err } = await longhaul(["run", "run: echo made > made.txt\nsay: It is made."], { cwd });
  expect(code).toBe(0);
  expect(err).toMatch(
    /\.longhaul\S* cannot be written: a part of its path is not a folder\.\nIts files: .* pull \S+ DIR/,
  );
});

test("under an ended session's id it attaches, and ends with that outcome", async () => {
  const order = ["run", "--id", "run-twice", "refuse: not today"];
  expect((await longhaul(order)).code).toBe(1);
  const { code, err } = await longhaul(order);
  expect(code).toBe(1);
  expect(err).toContain("attached to");
  const other = await longhaul(["run", "--id", "run-twice", "say: Other."]);
  expect(other).toMatchObject({ code: 5, out: "" });
});

test("with --json gives one event a line, and nothing else on stdout", async () => {
  const { code, out } = await longhaul(["run", "--json", "run: true\nsay: Done."]);
  expect(code).toBe(0);
  const events = out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { type: string; seq: number });
  expect(events[0]?.type).toBe("session:started");
  expect(events.at(-1)?.type).toBe("session:ended");
  expect(events.map(({ seq }) => seq)).toEqual(events.map(({ seq }) => seq).toSorted((a, b) => a - b));
});

test("with --output-schema prints the JSON alone, and gives it to programs", async () => {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, "schema.json"), '{"type":"object","required":["n"]}');
  const order = ["run", "--id", "run-json", "--output-schema", "schema.json", 'say: {"n": 1}'];
  const { code, out } = await longhaul(order, { cwd });
  expect({ code, out }).toEqual({ code: 0, out: '{"n":1}\n' });
  expect((await untilStatus("run-json", () => true)).output).toEqual({ n: 1 });
});

test("ends with 1 if the provider refuses, with its message", async () => {
  const { code, out, err } = await longhaul(["run", "refuse: not today"]);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("not today");
});

test("ends with 1 if the key is refused, with one message and the variable to set", async () => {
  const { code, out, err } = await longhaul(["run", "bar"]);
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err.match(/Incorrect API key provided/g)).toHaveLength(1);
  expect(err).toContain("Set OPENAI_API_KEY to a valid key for OPENAI_BASE_URL");
});

test("ends with 4 if the sandbox's image is not on the worker's host", async () => {
  const environment = { SANDBOX_IMAGE: "longhaul-sandbox:nowhere" };
  const { code, err } = await longhaul(["run", "run: true\nsay: Never."], { environment });
  expect(code).toBe(4);
  expect(err).toContain("longhaul-sandbox:nowhere does not exist on this Docker host");
});

test("ends with 3 at the step limit", async () => {
  const { code } = await longhaul(["run", "--max-steps", "1", "run: true\nrun: true\nsay: Never."]);
  expect(code).toBe(3);
});

test("ends with 6 if another client cancels", async () => {
  const running = starting(["run", "--id", "run-cancelled", "run: sleep 100\nsay: Never."]);
  await eventually("the command runs", () => running.err().includes("sleep 100"), 60_000);
  expect((await longhaul(["cancel", "run-cancelled"])).code).toBe(0);
  expect((await running.ended).code).toBe(6);
});

test("Ctrl-C ends with 130, says that the task continues, and it does", async () => {
  const running = starting(["run", "--id", "run-detached", "run: sleep 100\nsay: Done alone."]);
  await eventually("the command runs", () => running.err().includes("sleep 100"), 60_000);
  running.kill("SIGINT");
  const { code, err } = await running.ended;
  expect(code).toBe(130);
  expect(err).toMatch(/continues without this client/);
  await longhaul(["interrupt", "run-detached"]);
  expect((await untilStatus("run-detached", ({ status }) => status === "completed")).result).toBe(
    "Done alone.",
  );
});

test("a reader that closes the pipe ends it without an error", async () => {
  const running = starting(["run", "--json", "--id", "run-closed-pipe", "run: sleep 1\nsay: Done."]);
  await eventually("the first event", () => running.out().includes("session:started"), 60_000);
  running.closeOutput();
  const { err } = await running.ended;
  expect(err).not.toContain("EPIPE");
  expect(err).not.toContain("    at ");
});

test("no service, no worker: 4 with what is missing, in one line, and nothing is left", async () => {
  const cwd = emptyFolder();
  const { code, out, err } = await longhaul(["run", "say: Done."], {
    cwd,
    environment: { TEMPORAL_ADDRESS: "127.0.0.1:1" },
  });
  expect({ code, out }).toEqual({ code: 4, out: "" });
  expect(err).toContain("127.0.0.1:1");
  expect(existsSync(join(cwd, ".longhaul"))).toBe(false);
});
