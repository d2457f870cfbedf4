/** The operator's own tools, from the file that LONGHAUL_TOOLS names. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { oneLine } from "../activities/tools/paths.ts";
import { reasonOf } from "../activities/contract/errors.ts";
import { ownToolsOf, type OwnTools } from "../activities/tools/own/own-tools.ts";
import { ServiceMissing } from "../temporal/service-missing.ts";

/** @throws ServiceMissing (exit code 4) if the file cannot be loaded, or has something that is not a tool */
export async function loadOwnTools(path: string): Promise<OwnTools> {
  const file = resolve(path);
  try {
    const { default: exported } = (await import(pathToFileURL(file).href)) as { readonly default?: unknown };
    return ownToolsOf(exported);
  } catch (error) {
    throw new ServiceMissing({
      service: "The file of tools",
      address: file,
      problem: `LONGHAUL_TOOLS=${path} cannot be used; the worker was not started`,
      reason: oneLine(reasonOf(error), 500),
      fix: "Correct the file (docs/tools.md describes its form), or unset LONGHAUL_TOOLS.",
      cause: error,
    });
  }
}
