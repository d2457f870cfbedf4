/**
 * The Python programs' checks, which need no Python. `types`: pyright, for the oldest Python that each package runs on. `style`: ruff's
 * lint and format. `fix`: formats, and sorts imports.
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { PositionEncoding, Workspace, type Diagnostic } from "@astral-sh/ruff-wasm-nodejs";

const project = fileURLToPath(new URL("..", import.meta.url));

/** Folders, and the oldest Python in which each must run. */
const PACKAGES = {
  // Any image that has it, and containers that someone else owns. Debian 11 has this one; agent/loader.py refuses older ones.
  "activities/sandbox/agent": "3.9",
  // The operator's image: asyncio.timeout.
  "activities/sandbox/egress": "3.11",
  // Harbor's own oldest.
  "adapters/harbor": "3.12",
} as const;

const STYLE = {
  "line-length": 130,
  lint: {
    select: ["E", "F", "W", "I", "B", "C4", "UP", "PIE", "SIM", "RET", "RUF", "PLE", "ASYNC"],
    isort: { "known-first-party": ["agent", "egress", "longhaul_harbor"] },
    ignore: [
      // Lines end where the formatter ends them; strings and comments may be longer.
      "E501",
      // `with suppress` says less than a comment in `except` about why an error does not matter.
      "SIM105",
      // Some files stay open as long as their process lives.
      "SIM115",
      // A long list of names is easier to read without quotes.
      "SIM905",
    ],
  },
};

const filesIn = (folder: string): string[] =>
  spawnSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z", folder], {
    cwd: project,
    encoding: "utf8",
  })
    .stdout.split("\0")
    .filter((path) => path.endsWith(".py") && existsSync(join(project, path)));

/** Runs without a search path, so that no Python's own packages are found: the result is the same on each machine. */
function checkTypes(): boolean {
  const pyright = fileURLToPath(import.meta.resolve("pyright"));
  const failed = Object.entries(PACKAGES).filter(([folder, version]) => {
    const args = [pyright, "-p", "pyrightconfig.json", "--pythonversion", version, ...filesIn(folder)];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, {
      cwd: project,
      encoding: "utf8",
      env: { ...process.env, PATH: "" },
    });
    if (status !== 0) process.stdout.write(stdout + stderr);
    return status !== 0;
  });
  return failed.length === 0;
}

/** Ruff's own fix of imports that are not sorted; one at a time, since each moves the lines of the next. */
function sortImports(ruff: Workspace, text: string): string {
  const isUnsorted = ({ code, fix }: Diagnostic) => code === "I001" && fix !== null;
  const edit = (ruff.check(text) as Diagnostic[]).find(isUnsorted)?.fix?.edits[0];
  if (edit === undefined) return text;
  const lines = text.split("\n");
  const at = ({ row, column }: { readonly row: number; readonly column: number }) =>
    lines.slice(0, row - 1).join("\n").length + (row === 1 ? 0 : 1) + column - 1;
  const fixed = text.slice(0, at(edit.location)) + (edit.content ?? "") + text.slice(at(edit.end_location));
  return sortImports(ruff, fixed);
}

/** @returns what is wrong, a line each */
function checkStyle(fixes: boolean): string[] {
  return Object.entries(PACKAGES).flatMap(([folder, version]) => {
    const target = { "target-version": `py${version.replace(".", "")}` };
    const ruff = new Workspace({ ...STYLE, ...target }, PositionEncoding.Utf16);
    return filesIn(folder).flatMap((path) => {
      let text = readFileSync(join(project, path), "utf8");
      if (fixes) writeFileSync(join(project, path), (text = ruff.format(sortImports(ruff, text))));
      const found = (ruff.check(text) as Diagnostic[]).map(
        ({ code, message, start_location: at }) => `${path}:${at.row}:${at.column} ${code} ${message}`,
      );
      const isFormatted = fixes || ruff.format(text) === text;
      return isFormatted ? found : [...found, `${path} is not formatted: npm run fix`];
    });
  });
}

if (process.argv[2] === "types") process.exitCode = checkTypes() ? 0 : 1;
else {
  const wrong = checkStyle(process.argv[2] === "fix");
  for (const line of wrong) console.log(line);
  process.exitCode = wrong.length === 0 ? 0 : 1;
}
