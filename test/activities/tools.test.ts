import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { createSanitizer } from "../../activities/redaction/sanitizer.ts";
import type { InvokedTool } from "../../activities/tools/invoke.ts";
import { useSandbox, useTestSandboxes, waitUntil } from "../support/test-sandboxes.ts";
import { callTool } from "../support/tool-context.ts";

const sandboxes = useTestSandboxes();
const sandbox = useSandbox(sandboxes);

const call = (
  name: string,
  input: unknown,
  overrides?: Parameters<typeof callTool>[3],
): Promise<InvokedTool> => callTool(sandbox, name, input, overrides);
const sh = (command: string): Promise<InvokedTool> => call("bash", { command });

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Bytes in this process that something still refers to. */
async function heldBytes(): Promise<number> {
  // What a turn of the loop still refers to is free after it.
  await setImmediate();
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** Whether a process with this mark in its command line lives in the sandbox. */
async function alive(mark: string): Promise<boolean> {
  // The brackets keep the search from finding itself.
  return (
    (await sh(`pgrep -f '[${mark.slice(0, 1)}]${mark.slice(1)}' >/dev/null && echo alive || echo gone`))
      .text === "alive"
  );
}

describe("bash in the sandbox", () => {
  it("works as uid 1000 in /workspace and reports exit codes", async () => {
    expect(await sh("id -u; pwd; exit 42")).toMatchObject({
      text: "1000\n/workspace\n[exit code 42]",
      exitCode: 42,
    });
  });

  it(
    "ends a command that ignores TERM within 0.5 s of an abort, and keeps what it printed",
    { tags: ["case-23"] },
    async () => {
      const controller = new AbortController();
      const running = call(
        "bash",
        { command: "trap '' TERM; echo begun; while :; do sleep 0.05; done" },
        { signal: controller.signal, callKey: "abort-1" },
      );
      await waitUntil(async () => ((await sandbox.state("abort-1"))?.outBytes ?? 0) > 0, "it printed");
      const abortedAt = performance.now();
      controller.abort(new Error("interrupt"));
      const result = await running;
      // The benchmark holds the goal itself: other tests share this machine.
      expect(performance.now() - abortedAt).toBeLessThan(1_000);
      expect(result.outcome).toBe("interrupted");
      expect(result.text).toMatch(/^begun\n\[interrupted after \d+\.\d s\]$/);
      expect(await sandbox.state("abort-1")).toMatchObject({ kind: "killed" });
    },
  );

  it("returns when the shell ends although a child holds its output", { tags: ["case-25"] }, async () => {
    // Waiting for the child would end with a note about the timeout.
    expect((await sh("sleep 3333 & echo done")).text).toBe("done");
  });

  it("starts, polls and ends a server in the background", { tags: ["case-25"] }, async () => {
    await call("bash", { command: "echo up; exec sleep 4441", background: true }, { callKey: "bg-1" });
    await waitUntil(
      async () => (await call("bash_output", { id: "bg-1" })).text.startsWith("up\n"),
      "it printed",
    );
    expect((await call("kill_process", { id: "bg-1" })).text).toContain("ended by SIGTERM");
    expect(await alive("sleep 4441")).toBe(false);
  });

  it(
    "bounds 20 MB of output and streams the whole in pieces, without holding it",
    { tags: ["R26"] },
    async () => {
      const before = await heldBytes();
      const result = await sh("echo HEAD; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo TAIL");
      expect(result.text.length).toBeLessThanOrEqual(30_000);
      expect(result.text).toMatch(/^HEAD\n[^]*TAIL$/);
      let length = 0;
      for await (const piece of result.whole?.pieces() ?? []) {
        expect(piece.length).toBeLessThanOrEqual(4 * 2 ** 20);
        length += piece.length;
      }
      expect(length).toBe(20_000_011);
      // The engine's connection lets go of its last buffers some turns later.
      await waitUntil(async () => (await heldBytes()) - before < 4 * 2 ** 20, "nothing of it is held");
      expect(result.whole).toBeDefined();
    },
  );

  it(
    "makes bytes that are no UTF-8 and NUL visible, so that every reader takes them",
    { tags: ["R25"] },
    async () => {
      const { text } = await sh(
        "printf '\\377\\376a\\000b\\303' | tee b; printf '\\033[31mred\\033[6n\\033]0;title\\007\\033]11;?\\007\\033P+q\\033\\\\ end \\355\\240\\200'",
      );
      expect(createSanitizer([]).clean(text)).toBe("\uFFFD\uFFFDa␀b\uFFFDred end \uFFFD\uFFFD\uFFFD");
      expect((await call("read_file", { path: "b" })).text).toContain("binary file");
    },
  );
});

describe("file tools in the sandbox", () => {
  it("page huge files in under 3 s with a hint", { tags: ["R28"] }, async () => {
    await sh(
      "mkdir huge; cd huge; head -c 52428800 /dev/zero | tr '\\0' y > line; seq 2000000 > many; truncate -s 1G sparse; yes 'a line of text' | head -c 150000000 > text",
    );
    const timed = async (input: object): Promise<string> => {
      const startedAt = performance.now();
      const { text } = await call("read_file", input);
      expect(performance.now() - startedAt).toBeLessThan(3_000);
      return text;
    };
    expect(await timed({ path: "huge/line" })).toContain("line 1 continues");
    expect(await timed({ path: "huge/many", offset: 1_999_999 })).toContain("end of the file: 2000000 lines");
    expect(await timed({ path: "huge/text" })).toContain("continue with offset=2001");
    expect(await timed({ path: "huge/text", offset: 8_000_000, limit: 2 })).toContain(
      "8000001\ta line of text\n\n(lines",
    );
    expect(await timed({ path: "huge/text", offset: 90_000_000 })).toContain(
      "line 90000000 is beyond its end",
    );
    expect(await timed({ path: "huge/sparse" })).toContain("binary file");
    expect((await sh("rm -r huge")).exitCode).toBe(0);
  });

  it("find and search with ripgrep: newest first, .gitignore respected, matches bounded", async () => {
    await sh(
      "mkdir -p rg/src rg/node_modules/m rg/out && cd rg && echo out/ > .gitignore && echo hit > src/old.ts && echo hit > node_modules/m/x.ts && echo hit > out/x.ts && touch -d '1 hour ago' src/old.ts && seq 3000 | sed 's/^/hit /' > src/new.ts",
    );
    expect((await call("glob_files", { pattern: "*.ts", path: "rg" })).text).toBe(
      "rg/src/new.ts\nrg/src/old.ts",
    );
    expect((await call("glob_files", { pattern: "/workspace/rg/src/*.ts" })).text).toBe(
      "rg/src/new.ts\nrg/src/old.ts",
    );
    const found = await call("grep_content", { pattern: "^hit", path: "rg", include: "*.ts" });
    expect(found.text.match(/^\d+: hit/gm)).toHaveLength(1_000);
    expect(found.text).toContain("more than 1,000 matches");
    expect(found.text).not.toMatch(/node_modules|out\//);
    expect((await call("grep_content", { pattern: "nothing here", path: "rg" })).text).toContain(
      "No line matches",
    );
    expect((await call("grep_content", { pattern: "(", path: "rg" })).text).toContain("regular expression");
  });

  it("land parallel edits on one file, all of them", { tags: ["case-26"] }, async () => {
    const names = Array.from({ length: 8 }, (_value, index) => `<${index}>`);
    await call("write_file", { path: "parallel.txt", content: names.join("\n") });
    const results = await Promise.all(
      names.map((name) =>
        call("edit_file", { path: "parallel.txt", old_string: name, new_string: `${name}!` }),
      ),
    );
    expect(results.map(({ outcome }) => outcome)).toEqual(names.map(() => "completed"));
    expect((await sh("cat parallel.txt")).text).toBe(names.map((name) => `${name}!`).join("\n"));
  });

  it("keep a file's mode when it is edited, and apply a patch whole or not at all", async () => {
    await sh("printf 'echo one\\n' > run.sh; chmod 755 run.sh");
    await call("edit_file", { path: "run.sh", old_string: "one", new_string: "two" });
    expect((await sh("./run.sh; stat -c %a run.sh")).text).toBe("two\n755");
    const failed = await call("apply_patch", {
      patch:
        "*** Begin Patch\n*** Update File: run.sh\n@@\n-echo two\n+echo three\n*** Add File: ../tmp/x\n+x\n*** End Patch",
    });
    expect(failed.outcome).toBe("error");
    expect((await sh("./run.sh")).text).toBe("two");
  });
});
