/** Gitea, built once from its Go module, with its pages built by npm: the module has no styles and scripts. */
import { cpSync, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { childEnvironment, findOnPath, lastWords, run } from "../../../client/setup/processes.ts";
import { type Say, slowly } from "../../../client/setup/progress.ts";
import { cacheFolder } from "../../../client/setup/temporal-binary.ts";

/** The newest whose module, and all that it needs, Go's module proxies serve. Source: tried with 1.27.3, 2026-11. */
const GITEA_VERSION = "1.24.6";
const MODULE = "code.gitea.io/gitea";
/** What the server reads beside its program. */
const PARTS = ["templates", "options", "public"] as const;
/** The build took 323 s on two busy cores, the pages 81 s. Source: measured 2026-11. */
const BUILD_MS = 60 * 60_000;

export type GiteaPrograms =
  | { readonly ok: true; readonly program: string; readonly folder: string }
  | { readonly ok: false; readonly why: string };

/** Finds it, or builds it. */
export async function giteaPrograms(say: Say): Promise<GiteaPrograms> {
  const cache = cacheFolder();
  const folder = join(cache, `gitea-${GITEA_VERSION}`);
  const built = { ok: true, program: join(folder, "gitea"), folder } as const;
  if (existsSync(folder)) return built;
  // Its driver for SQLite is in C.
  const [go, npm, gcc] = ["go", "npm", "gcc"].map(findOnPath);
  if (go === undefined || npm === undefined || gcc === undefined)
    return { ok: false, why: "Go, npm and gcc are needed, and not all of them are installed" };
  mkdirSync(cache, { recursive: true });
  const building = `${folder}.${process.pid}`;
  try {
    await slowly(say, `Building Gitea ${GITEA_VERSION} with Go and npm, once (5 to 20 minutes)`, () =>
      build(go, npm, building),
    );
    // A concurrent build has made the same.
    if (!existsSync(folder)) renameSync(join(building, "made"), folder);
    return built;
  } catch (error) {
    return { ok: false, why: `Gitea ${GITEA_VERSION} could not be built: ${lastWords(error)}` };
  } finally {
    rmSync(building, { recursive: true, force: true });
  }
}

async function build(go: string, npm: string, folder: string): Promise<void> {
  const [source, made] = [join(folder, "source"), join(folder, "made")];
  const at = (cwd: string) => ({
    cwd,
    env: { ...childEnvironment("installer"), CGO_ENABLED: "1" },
    timeout: BUILD_MS,
    maxBuffer: 256 * 1024 * 1024,
  });
  mkdirSync(made, { recursive: true });
  const { stdout } = await run(go, ["mod", "download", "-json", `${MODULE}@v${GITEA_VERSION}`], at(folder));
  const { Dir: module } = JSON.parse(stdout) as { readonly Dir: string };
  cpSync(module, source, { recursive: true });
  // A module's files may not be changed.
  await run("chmod", ["-R", "u+w", source], at(folder));
  const version = ["-ldflags", `-X main.Version=${GITEA_VERSION}`];
  const program = join(made, "gitea");
  await run(
    go,
    ["build", "-tags", "sqlite sqlite_unlock_notify", ...version, "-o", program, "."],
    at(source),
  );
  await run(npm, ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], at(source));
  await run(npm, ["exec", "--", "webpack"], at(source));
  for (const part of PARTS) cpSync(join(source, part), join(made, part), { recursive: true });
}
