/** The project's tracked files, and what each imports. */
import { execFileSync } from "node:child_process";
import { lstatSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export const project = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

export interface Source {
  /** From the project's folder. */
  readonly path: string;
  readonly text: string;
}

/** Files that git tracks or would track, matched by `pattern`. */
export function sources(pattern = /\.ts$/): Source[] {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], {
    cwd: project,
    encoding: "utf8",
    maxBuffer: 16 * 1024 * 1024,
  });
  return [...new Set(listed.split("\0"))]
    .filter((path) => pattern.test(path) && isFile(join(project, path)))
    .map((path) => ({ path, text: readFileSync(join(project, path), "utf8") }));
}

/** Of one file; empty if it is not there. */
export function textOf(path: string): string {
  return sources(new RegExp(`^${path.replaceAll(".", "\\.")}$`))[0]?.text ?? "";
}

// A folder with a repository of its own, a link and a file that was just removed are listed too.
function isFile(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

const IMPORT =
  /(?:^|\n)\s*(?:import|export)\s+(type\s+)?(?:[^"';]*?\sfrom\s+)?["']([^"']+)["']|import\(\s*["']([^"']+)["']/g;

export interface Import {
  /** A package's name, or a path from the project's folder. */
  readonly to: string;
  readonly typeOnly: boolean;
}

export function importsOf(source: Source): Import[] {
  return [...source.text.matchAll(IMPORT)].map((found) => {
    const written = found[2] ?? found[3] ?? "";
    const to = written.startsWith(".")
      ? relative(project, join(project, dirname(source.path), written))
      : written;
    return { to, typeOnly: found[1] !== undefined };
  });
}

/** `path: package` of each import of `packages` from elsewhere than `allowed`. */
export function trespasses(packages: RegExp, allowed: RegExp): string[] {
  return sources()
    .filter(({ path }) => !allowed.test(path))
    .flatMap((source) =>
      importsOf(source)
        .filter(({ to }) => packages.test(to))
        .map(({ to }) => `${source.path}: ${to}`),
    );
}

/** Depth first; one circle for each import that closes one. */
export function circlesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): void => {
    const met = way.indexOf(file);
    if (met >= 0) circles.push([...way.slice(met), file]);
    if (met >= 0 || done.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...way, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
  return circles;
}
