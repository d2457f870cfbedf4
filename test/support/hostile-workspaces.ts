/** Workspaces that try to break saving, restoring, pulling and comparing, from test/fixtures/hostile-workspaces.yaml. */
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parse } from "yaml";
import { fixtureText } from "./fixture-text.ts";

export interface Hostile {
  readonly fill: string;
  readonly skipped?: { readonly named: string; readonly removal: string };
  readonly beside?: string;
}

/** Python in front of each program. */
export const TOOLS = fixtureText("programs/hostile-tools.py");
export const HASH = fixtureText("programs/hostile-hash.py");

/** Created by programs that a repository names. */
export const MARKER = join(tmpdir(), `longhaul-was-run-${process.pid}`);

export const HOSTILE = parse(
  fixtureText("hostile-workspaces.yaml").replaceAll("{{MARKER}}", MARKER),
) as Readonly<Record<string, Hostile>>;
