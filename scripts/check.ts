/** `npm run check`: types, lint, format and dead code, of TypeScript and Python. Reports which of them failed, and exits with 1 if one did. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const project = fileURLToPath(new URL("..", import.meta.url));

interface Step {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
}

/** The workflow and pure folders are compiled without Node's types, so using Node there is a type error. */
const steps = {
  types: { name: "types", command: ["tsc", "-p", "."] },
  workflow: { name: "types of the workflow and pure folders", command: ["tsc", "-p", "workflows"] },
  lint: { name: "lint", command: ["oxlint"] },
  format: { name: "format", command: ["oxfmt", "--check"] },
  python: { name: "types of the Python", command: ["node", "scripts/python.ts", "types"] },
  pythonStyle: { name: "lint and format of the Python", command: ["node", "scripts/python.ts", "style"] },
  unused: { name: "unused files, exports and dependencies", command: ["knip"] },
} as const satisfies Record<string, Step>;

function run({ name, command: [program, ...args] }: Step): Promise<boolean> {
  const began = Date.now();
  return new Promise((resolve) => {
    const path = program === "node" ? process.execPath : join(project, "node_modules", ".bin", program);
    const child = spawn(path, args, { cwd: project });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (piece) => (output += String(piece)));
    child.on("error", (error) => (output += error.message));
    child.on("close", (code) => {
      const seconds = ((Date.now() - began) / 1_000).toFixed(1);
      if (code !== 0) process.stdout.write(output);
      process.stdout.write(`${code === 0 ? "ok    " : "FAILED"} ${name} (${seconds} s)\n`);
      resolve(code === 0);
    });
  });
}

// Two at a time, for two cores.
const results = [
  ...(await Promise.all([run(steps.types), run(steps.format)])),
  ...(await Promise.all([run(steps.workflow), run(steps.lint)])),
  ...(await Promise.all([run(steps.unused), run(steps.python)])),
  await run(steps.pythonStyle),
];
process.exitCode = results.every(Boolean) ? 0 : 1;
