/** Searches with ripgrep and Git in the sandbox, as uid 1000. */
import { expect, it } from "vitest";
import { bash, useSandbox, useTestSandboxes } from "../support/test-sandboxes.ts";
import { callTool } from "../support/tool-context.ts";

const sandboxes = useTestSandboxes();
const sandbox = useSandbox(sandboxes);

const shown = async (name: string, input: unknown) => (await callTool(sandbox, name, input)).text;

it("searches as Git reads the folder, CRLF, zero bytes, UTF-16 and unreadable files included", async () => {
  await bash(
    sandbox,
    `git init -q; printf 'core\\n*.log\\n' > .gitignore; mkdir -p Core core s
     printf 'end = 1;\\r\\nneedle\\r\\n' > Core/a.c; printf 'needle\\n' > core/b.c; printf 'needle\\n' > s/t.log
     printf 'x needle\\n\\0y\\nneedle\\n' > s/zero.txt; printf '\\xff\\xfen\\0e\\0e\\0d\\0l\\0e\\0\\n\\0' > s/wide.txt
     printf 'n\\0e\\0e\\0d\\0l\\0e\\0\\n\\0' > s/bare.txt; printf '\\0n\\0e\\0e\\0d\\0l\\0e\\0\\n' > s/big.txt
     printf 'needle\\n' > s/closed; chmod 0 s/closed`,
  );
  expect(await shown("grep_content", { pattern: "1;$" })).toBe(
    "Core/a.c\n1: end = 1;\n(Left out by ignore rules: 2 entries)\n(Could not be looked at: ./s/closed: Permission denied (os error 13))",
  );
  const text = await shown("grep_content", { pattern: "needle" });
  expect(text).toContain("Core/a.c\n2: needle");
  expect(text).toContain("s/wide.txt\n1: needle");
  expect(text).toContain("s/zero.txt\n1: x needle");
  for (const bare of ["s/bare.txt", "s/big.txt"]) {
    expect(text).toContain(`${bare}\n1: needle`);
    expect(await shown("grep_content", { pattern: "^needle$", path: bare })).toBe(`${bare}\n1: needle`);
  }
  expect(text).toContain("s/closed");
  expect(await shown("grep_content", { pattern: "needle", path: "core" })).toBe("core/b.c\n1: needle");
  expect(await shown("grep_content", { pattern: "(" })).toContain("regular expression");
  expect(await shown("glob_files", { pattern: "*.none" })).toBe(
    "No file matches *.none.\n(Left out by ignore rules: core/, s/t.log; name one to look there)",
  );
  expect(await shown("glob_files", { pattern: "**/*.[ch]" })).toBe("Core/a.c");
});

it("searches 20,000 files in a few seconds, and finds the newest first", async () => {
  await bash(
    sandbox,
    `rm -rf many; mkdir many; cd many; for d in $(seq 100); do mkdir $d; (cd $d; for f in $(seq 200); do echo "line $f" > $f.txt; done); done
     touch -d 2030-01-01 7/7.txt`,
  );
  const started = performance.now();
  expect(await shown("glob_files", { pattern: "many/**/7.txt" })).toMatch(/^many\/7\/7\.txt\n/);
  expect(await shown("grep_content", { pattern: "line 200", path: "many" })).toContain(
    "many/1/200.txt\n1: line 200",
  );
  const took = performance.now() - started;
  process.stdout.write(`two searches of 20,000 files: ${took.toFixed(0)} ms\n`);
  expect(took).toBeLessThan(20_000);
}, 120_000);
