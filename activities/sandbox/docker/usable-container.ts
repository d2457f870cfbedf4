/** Whether a session can work in a container that someone else owns. */
import type Dockerode from "dockerode";
import { reasonOf } from "../../contract/errors.ts";
import { imageSource, pythonArguments } from "../agent/sources.ts";
import { unless } from "./docker-errors.ts";
import { SESSION_LABEL } from "./profile.ts";
import { runInside } from "./run-program.ts";

export type FoundContainer =
  | { readonly id: string; readonly folder: string; readonly image: string }
  | { readonly id: undefined; readonly why: string };

/** The running container of that name, with its own working folder. @throws SandboxUnavailable (retryable) */
export async function usableContainer(
  docker: Dockerode,
  { name, id }: { readonly name: string; readonly id?: string | undefined },
): Promise<FoundContainer> {
  const found = await unless([404], () => docker.getContainer(name).inspect());
  if (found === undefined)
    return { id: undefined, why: "there is none of that name on the worker's Docker host" };
  if (id !== undefined && found.Id !== id)
    return { id: undefined, why: "it is not the container of that name that was meant" };
  if (found.Config.Labels[SESSION_LABEL] !== undefined)
    return { id: undefined, why: "it is a sandbox of Longhaul's own" };
  if (!found.State.Running || found.State.Paused)
    return { id: undefined, why: `it is not running (${found.State.Status})` };
  return { id: found.Id, folder: found.Config.WorkingDir || "/", image: found.Image };
}

/** Checks for python3, which the supervisor needs. @returns why it cannot be used; undefined if it can */
export async function lacksPython(docker: Dockerode, id: string): Promise<string | undefined> {
  try {
    const { answer, said } = await runInside(docker, id, {
      argv: pythonArguments("LONGHAUL_IMAGE"),
      env: [`LONGHAUL_IMAGE=${imageSource}`, "LONGHAUL_FOLDERS=[]"],
    });
    return answer === undefined ? noPython(said) : undefined;
  } catch (error) {
    return reasonOf(error);
  }
}

export const noPython = (said: string): string =>
  `python3, which the supervisor needs, does not run in it: ${said}`;
