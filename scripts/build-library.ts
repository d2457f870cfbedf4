/**
 * `npm run build:library`: builds `longhaul/client` and `longhaul/tools` as JavaScript with declarations, in dist/, because
 * Node does not strip types from files in node_modules.
 */
import { spawnSync } from "node:child_process";
import { cpSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

const project = fileURLToPath(new URL("..", import.meta.url));
const at = (path: string) => `${project}/${path}`;

rmSync(at("dist"), { recursive: true, force: true });
const compiler = at("node_modules/typescript/bin/tsc");
const { status } = spawnSync(process.execPath, [compiler, "-p", at("tsconfig.library.json")], {
  stdio: "inherit",
});
if (status !== 0) process.exit(status ?? 1);
// Files that the sources read at run time.
const read = [
  "package.json",
  "activities/store/migrations",
  "activities/sandbox/agent",
  "activities/sandbox/egress",
];
for (const path of read)
  cpSync(at(path), at(`dist/${path}`), { recursive: true, filter: (from) => !from.endsWith(".ts") });
