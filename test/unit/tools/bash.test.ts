import { describe, expect, it } from "vitest";
import { createSanitizer } from "../../../activities/redaction/sanitizer.ts";
import { LeaveRunning } from "../../../activities/tools/tool.ts";
import { defaultLimits } from "../../../activities/config/run-policy.ts";
import { callTool, useFakeSandbox } from "../../support/tool-context.ts";

const sandbox = useFakeSandbox();

/** What a call may have besides its input. */
type CallMore = Parameters<typeof callTool> extends [unknown, unknown, unknown, ...infer More] ? More : never;

const run = (input: object, ...more: CallMore) => callTool(sandbox, "bash", input, ...more);
const output = (input: object, ...more: CallMore) => callTool(sandbox, "bash_output", input, ...more);

/** Aborts once the command has been started. */
function abortOnceStarted(reason: unknown): AbortSignal {
  const controller = new AbortController();
  void (async () => {
    await expect.poll(async () => (await sandbox.list()).length).toBe(1);
    controller.abort(reason);
  })();
  return controller.signal;
}

describe("bash", () => {
  it("gives both streams in order, and the exit code only when it is not 0", async () => {
    expect(await run({ command: "echo out; echo err >&2" })).toMatchObject({
      outcome: "completed",
      text: "out\nerr",
      exitCode: 0,
    });
    expect(await run({ command: "echo bad; exit 7" })).toMatchObject({
      outcome: "completed",
      text: "bad\n[exit code 7]",
      exitCode: 7,
    });
    expect(await run({ command: "true" })).toMatchObject({ text: "(no output)" });
  });

  it("runs in the given folder, and refuses one that is outside or missing", async () => {
    await run({ command: "mkdir -p a/b" });
    expect((await run({ command: "pwd", cwd: "a/b" })).text).toMatch(/\/a\/b$/);
    expect(await run({ command: "pwd", cwd: "../.." })).toMatchObject({
      outcome: "error",
    });
    expect((await run({ command: "pwd", cwd: "nope" })).text).toContain("was not started");
  });

  it("ends a command at its timeout, keeps its output and says how to run longer", async () => {
    const result = await run({ command: "echo begun; sleep 60", timeout_seconds: 0.3 });
    expect(result.outcome).toBe("error");
    expect(result.text).toMatch(/^begun\n\[timed out after 0\.3 s/);
    expect(result.text).toContain("background: true");
    expect(result.text).toContain("at most 600");
  });

  it("never lets the model wait longer than the limit", async () => {
    await run(
      { command: "true", timeout_seconds: 86_400 },
      { limits: { ...defaultLimits("bash"), maxTimeoutMs: 1_500 } },
    );
    expect(sandbox.started[0]?.timeoutMs).toBe(1_500);
  });

  it("ends the command when it is interrupted and keeps its output", { tags: ["case-23"] }, async () => {
    const signal = abortOnceStarted(new Error("interrupt"));
    const result = await run({ command: "echo begun; exec sleep 60" }, { signal, callKey: "s1c0" });
    expect(result.outcome).toBe("interrupted");
    expect(result.text).toMatch(/\[interrupted after \d+\.\d s\]$/);
    expect((await sandbox.state("s1c0"))?.kind).toBe("killed");
  });

  it("does not start when it was interrupted before", async () => {
    const result = await run({ command: "touch x" }, { signal: AbortSignal.abort(new Error("interrupt")) });
    expect(result).toMatchObject({ outcome: "interrupted" });
    expect(sandbox.started).toEqual([]);
  });

  it("leaves the command running when the worker stops, and the next attempt follows it", async () => {
    const leave = new LeaveRunning("worker shuts down");
    const input = { command: "until [ -e go ]; do sleep 0.05; done; echo done" };
    const first = run(input, { signal: abortOnceStarted(leave), callKey: "s1c0" });
    await expect(first).rejects.toBe(leave);
    expect((await sandbox.state("s1c0"))?.kind).toBe("running");

    const second = run(input, { resumed: true, callKey: "s1c0" });
    await run({ command: "touch go" });
    expect(await second).toMatchObject({ outcome: "completed", text: "done" });
    expect(sandbox.started.filter(({ id }) => id === "s1c0")).toHaveLength(1);
  });

  it("never runs a command twice: an unknown outcome is reported as such, with the command", async () => {
    const result = await run({ command: "echo again" }, { resumed: true });
    expect(result.outcome).toBe("unknown");
    expect(result.text).toContain("echo again");
    expect(result.text).toContain("before you repeat it");
    expect(sandbox.started).toEqual([]);
  });

  it(
    "runs a command that was claimed and never begun: its own sandbox has no record of it",
    { tags: ["A4"] },
    async () => {
      const input = { command: "echo now" };
      const { container } = sandbox.identity;
      expect(await run(input, { resumed: true, claimedIn: container, callKey: "s1c0" })).toMatchObject({
        outcome: "completed",
        text: "now",
      });
      const elsewhere = { resumed: true, claimedIn: "another sandbox", callKey: "s1c1" };
      expect(await run(input, elsewhere)).toMatchObject({ outcome: "unknown" });
      expect(sandbox.started.map(({ id }) => id)).toEqual(["s1c0"]);
    },
  );

  it("returns the result of an earlier attempt that ended meanwhile", async () => {
    await run({ command: "echo once; exit 3" }, { callKey: "s1c0" });
    expect(await run({ command: "echo once; exit 3" }, { resumed: true, callKey: "s1c0" })).toMatchObject({
      text: "once\n[exit code 3]",
      exitCode: 3,
    });
    expect(sandbox.started).toHaveLength(1);
  });

  it(
    "shows head and tail of a long output and stores the whole in pieces",
    { tags: ["case-16", "R26"] },
    async () => {
      const result = await run({
        command: "echo HEAD; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo TAIL; exit 1",
      });
      expect(result.text.length).toBeLessThanOrEqual(30_000);
      expect(result.text.startsWith("HEAD\n")).toBe(true);
      expect(result.text.endsWith("TAIL\n[exit code 1]")).toBe(true);
      expect(result.text).toContain("[Output truncated - exceeded maximum length]");
      expect(result.text).toContain("of 5,000,011 characters");
      let length = 0;
      for await (const piece of result.whole?.pieces() ?? []) {
        expect(piece.length).toBeLessThanOrEqual(262_144);
        length += piece.length;
      }
      expect(length).toBe(5_000_011);
    },
  );

  it("shows no seam where head and tail meet, unless cleaning leaves room for it", async () => {
    const plain = await run({ command: "yes plain | head -c 3000000" });
    expect(plain.text).not.toContain("the middle of the output");
    const coloured = await run(
      { command: "yes $'\\e[31m\\e[0m' | head -c 3000000" },
      {},
      {
        clean: (text) => text.replaceAll("\u001b[31m\u001b[0m\n", ""),
      },
    );
    expect(coloured.text).toContain("the middle of the output");
    expect(coloured.truncated).toBe(true);
  });

  it("decodes characters whole across pieces and at both cuts", async () => {
    const result = await run({
      command: "yes '😀é' | head -n 200000 | tr -d '\\n'",
    });
    expect(result.text).not.toContain("\uFFFD");
    let whole = "";
    for await (const piece of result.whole?.pieces() ?? []) whole += piece;
    expect(whole).toBe("😀é".repeat(200_000));
  });

  it("starts background work at once, polls it by offset and ends it", { tags: ["case-25"] }, async () => {
    const input = { command: "for i in 1 2 3; do echo é$i; done; exec sleep 60", background: true };
    const started = await run(input, { callKey: "s9c1" });
    expect(started.text).toContain('bash_output id="s9c1"');
    expect(sandbox.started[0]?.timeoutMs).toBeUndefined();
    await expect
      .poll(async () => (await output({ id: "s9c1" })).text)
      .toMatch(/^é1\né2\né3\n\[running for \d+ s; next offset=12\]$/);
    expect((await output({ id: "s9c1" })).isLive).toBe(true);
    expect((await output({ id: "s9c1", offset: 4 })).text).toMatch(/^é2\né3\n/);
    expect((await output({ id: "s9c1", offset: 99 })).outcome).toBe("error");
    expect((await callTool(sandbox, "kill_process", { id: "s9c1" })).text).toContain("SIGTERM");
    expect((await callTool(sandbox, "kill_process", { id: "s9c1" })).text).toContain("had ended before");
    const ended = await output({ id: "s9c1" });
    expect([ended.text.includes("ended by SIGTERM"), ended.isLive]).toEqual([true, false]);
  });

  it("pages a background command's long output without splitting a character", async () => {
    await run({ command: "yes é | head -n 30000 | tr -d '\\n'", background: true }, { callKey: "s8c0" });
    await sandbox.wait("s8c0");
    let text = "";
    for (let offset = 0; offset < 60_000;) {
      const page = await output({ id: "s8c0", offset });
      text += page.text.replace(/\n\[.*$/s, "");
      offset = Number(/next offset=(\d+)/.exec(page.text)?.[1]);
    }
    expect(text).toBe("é".repeat(30_000));
  });

  it("masks a secret that crosses the edge of a page, from any offset", async () => {
    const secret = "s3cret/Value+with=odd chars~42";
    const { maskWindow } = createSanitizer([secret]);
    const command = `printf 'é%.0s' $(seq 100); printf '${secret}'; printf 'é%.0s' $(seq 100)`;
    await run({ command, background: true }, { callKey: "s6c0" });
    await sandbox.wait("s6c0");
    const limits = { ...defaultLimits("bash_output"), maxChars: 400 + 20 };
    let whole = "";
    for (let offset = 195; offset < 235; offset += 1) {
      const page = await output({ id: "s6c0", offset }, { limits, maskWindow });
      const shown = page.text.replace(/\n\[exited.*$/s, "");
      for (let at = 0; at + 6 <= secret.length; at += 1)
        expect(shown).not.toContain(secret.slice(at, at + 6));
      whole += shown;
    }
    expect(whole).toContain("é[masked]");
    expect(whole).toContain("[masked]é");
  });

  it("names the running commands when an id is unknown", async () => {
    await run({ command: "sleep 60", background: true }, { callKey: "s7c0" });
    expect((await output({ id: "zzz" })).text).toContain("Running: s7c0");
  });
});

it("bash_output and kill_process say if the id, or no command at all, was ever started", async () => {
  for (const tool of ["bash_output", "kill_process"])
    expect((await callTool(sandbox, tool, { id: "s12c0" })).text).toMatch(
      /^No command with the id "s12c0" was ever started in this sandbox\. No command has been started in this sandbox at all: bash starts one/,
    );
  await run({ command: "true" });
  expect((await output({ id: "s12c0" })).text).toMatch(
    /was ever started in this sandbox\. None is running: bash starts one/,
  );
});
