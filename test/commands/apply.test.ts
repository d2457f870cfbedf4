import { expect, test } from "vitest";
import { mkdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gitIn } from "../support/remotes.ts";
import { emptyFolder, finished, longhaul } from "../support/commands/longhaul.ts";

test("applies the change on a new branch of the checkout; push and pr need a repository", async () => {
  const cwd = emptyFolder();
  gitIn(cwd, "init", "-q", "-b", "main");
  gitIn(cwd, "config", "user.name", "Ada");
  gitIn(cwd, "config", "user.email", "ada@example.org");
  writeFileSync(join(cwd, "a.txt"), "one\n");
  gitIn(cwd, "add", "-A");
  gitIn(cwd, "commit", "-q", "-m", "Begin");
  const id = await finished("run: echo two > a.txt; echo new > b.txt\nsay: Done.", "--workspace", cwd);
  expect(await longhaul(["apply", id], { cwd })).toMatchObject({ code: 0, out: `longhaul/${id}\n` });
  expect(gitIn(cwd, "diff", "--name-status", "main", "HEAD")).toBe("M\ta.txt\nA\tb.txt");
  expect(gitIn(cwd, "log", "-1", "--format=%(trailers)")).toBe(`Longhaul-Session: ${id}`);
  expect((await longhaul(["apply", id], { cwd })).code).toBe(5);
  const push = await longhaul(["push", id]);
  expect(push).toMatchObject({ code: 5, out: "" });
  expect(push.err).toContain(` apply ${id}`);
});

test("an old C repository that tracks an ignored folder is changed and applied back whole", async () => {
  const cwd = emptyFolder();
  const put = (name: string, text: string | Buffer, mode = 0o644) =>
    writeFileSync(join(cwd, name), text, { mode });
  for (const folder of ["core", "Core", "doc", "build"]) mkdirSync(join(cwd, folder));
  put(".gitignore", "core\n*.o\n*~\n/build/\n");
  put("Makefile", "prog: core/main.o core/engine.o\n\tcc -o prog core/main.o core/engine.o\n");
  put(
    "core/main.c",
    '#include <stdio.h>\nint answer(void);\nint main(void)\n{\n\tprintf("%d\\n", answer());\n\treturn 0;\n}\n',
  );
  put("core/engine.c", "int answer(void)\r\n{\r\n\treturn 41;\r\n}\r\n");
  put("Core/legacy.c", "/* kept */\n");
  put("doc/AUTHORS", Buffer.from("J\xf6rg and Andr\xe9\n", "latin1"));
  put("configure", "#!/bin/sh\nexit 0\n", 0o755);
  put("build/old.o", "object");
  put(".env", "TOKEN=not-for-anyone\n");
  symlinkSync("core/main.c", join(cwd, "main.c"));
  gitIn(cwd, "init", "-q", "-b", "main");
  gitIn(cwd, "config", "user.name", "Ada");
  gitIn(cwd, "config", "user.email", "ada@example.org");
  gitIn(cwd, "add", "-A", "--", ".", ":!.env");
  gitIn(cwd, "add", "-f", "core/main.c", "core/engine.c");
  gitIn(cwd, "commit", "-q", "-m", "Import of 1994");
  // As a checkout that was copied: Git's index has other times.
  utimesSync(join(cwd, "Makefile"), 1, 1);

  const id = await finished(
    [
      "run: test ! -e build && make -s prog && ./prog",
      "run: sed -i 's/return 41/return 42/' core/engine.c && printf '/* new */\\n' > Core/added.c && make -s prog && ./prog",
      "run: printf '/* forced */\\n' > core/forced.c && git add -f core/forced.c && git -c user.name=a -c user.email=a@b.c commit -qam Answer",
      "run: printf 'unseen' > core/unseen.c",
      "say: Done.",
    ].join("\n"),
    "--workspace",
    cwd,
    "--leave-out",
    ".env",
  );
  const messages = (await longhaul(["messages", id])).out;
  expect(messages).toMatch(/\b41\b[^]*\b42\b/);
  const changed = "M\tcore/engine.c\nA\tcore/forced.c\nA\tCore/added.c";
  const diff = await longhaul(["diff", id], { cwd });
  expect(diff.err).toContain("core/unseen.c");
  expect(diff.out).not.toMatch(/^deleted file|unseen\.c|^diff.*\.o$/m);
  const before = gitIn(cwd, "ls-tree", "-r", "HEAD");
  const applied = await longhaul(["apply", id], { cwd });
  expect(applied.code, applied.err).toBe(0);
  const names = gitIn(cwd, "diff", "--name-status", "main", "HEAD").split("\n");
  expect(names.filter((line) => !line.includes("prog")).toSorted()).toEqual(changed.split("\n").toSorted());
  const kept = before.split("\n").filter((line) => !line.endsWith("\tcore/engine.c"));
  const after = gitIn(cwd, "ls-tree", "-r", "HEAD").split("\n");
  expect(kept.length).toBeGreaterThan(6);
  for (const line of kept) expect(after).toContain(line);
  expect(readFileSync(join(cwd, "core/engine.c"), "utf8")).toBe(
    "int answer(void)\r\n{\r\n\treturn 42;\r\n}\r\n",
  );
  expect(readFileSync(join(cwd, ".env"), "utf8")).toContain("not-for-anyone");
}, 240_000);
