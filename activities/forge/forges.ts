/** The forge that a call is for, and the name that a repository has there now. */
import type { ForgePlace } from "../config/git-settings.ts";
import { askWhereMoved, ForgeRefusal, type ForgeCall } from "./calls.ts";
import { projectIn, type Forge } from "./forge.ts";
import { gitea } from "./gitea.ts";
import { github } from "./github.ts";
import { gitlab } from "./gitlab.ts";

const FORGES: Readonly<Record<ForgePlace["kind"], Forge>> = { github, gitlab, gitea };

export const adapterFor = ({ forge }: ForgeCall): Forge => FORGES[forge.kind];

/**
 * Does something with a repository; once more under its present name if the forge says that it was renamed or given to somebody else.
 * @param repositoryId its number, if it is known: with it, it is found also if the former name leads nowhere any more
 * @param use may be called twice, the second time after a refusal. @throws ForgeRefusal
 */
export async function atPresentName<T>(
  call: ForgeCall,
  repositoryId: string | undefined,
  use: (call: ForgeCall) => Promise<T>,
): Promise<T> {
  try {
    return await use(call);
  } catch (error) {
    if (!(error instanceof ForgeRefusal)) throw error;
    const project = await presentName(call, error, repositoryId);
    if (project === undefined || project === call.forge.project) throw error;
    return await use({ ...call, forge: { ...call.forge, project } });
  }
}

async function presentName(
  call: ForgeCall,
  { status, movedTo }: ForgeRefusal,
  repositoryId: string | undefined,
): Promise<string | undefined> {
  const isGone = status === 404 || status === 410;
  if (repositoryId !== undefined && (movedTo !== undefined || isGone))
    return await adapterFor(call).projectOf(call, repositoryId);
  if (movedTo === undefined) return undefined;
  return projectIn(await askWhereMoved(call, adapterFor(call).repositoryPath(call.forge.project)));
}
