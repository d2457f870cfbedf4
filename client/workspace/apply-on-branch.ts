/**
 * Applies a patch on a new branch of a person's checkout. The patch is checked first: if it does not apply, or would
 * touch uncommitted changes, nothing is changed. No hook runs, because an agent wrote the change.
 */
import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { notPossible, unwritable } from "../console/errors.ts";

const MAX_OUTPUT_BYTES = 16 * 1024 * 1024;

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/**
 * @param folder of the checkout: the patch's paths are relative to it
 * @returns whether the change could be committed; otherwise it is staged
 * @throws ClientError (impossible)
 */
export async function applyOnBranch(
  folder: string,
  change: { readonly patch: string; readonly branch: string; readonly message: string },
): Promise<{ readonly committed: boolean }> {
  const { patch, branch, message } = change;
  const place = await git(folder, ["rev-parse", "--show-toplevel", "--absolute-git-dir", "--show-prefix"]);
  if (place.code !== 0)
    throw notPossible(
      `${folder} is not a Git checkout: ${words(place)}`,
      "Go to your checkout, or copy the files instead: longhaul pull ID DIR",
    );
  const [top = folder, gitFolder = folder, prefix = ""] = place.out.split("\n");
  for (const target of [top, gitFolder])
    await access(target, constants.W_OK).catch((error: unknown) => {
      throw unwritable(
        target,
        error,
        "Go to a checkout of your own, or copy the files instead: longhaul pull ID DIR",
      );
    });
  if ((await git(top, ["rev-parse", "--verify", "--quiet", `refs/heads/${branch}`])).code === 0)
    throw notPossible(
      `There is a branch ${branch} already: nothing was changed.`,
      "Choose another: --branch NAME",
    );
  const before = await git(top, ["symbolic-ref", "--quiet", "--short", "HEAD"]);
  const head = before.code === 0 ? before.out.trim() : (await git(top, ["rev-parse", "HEAD"])).out.trim();
  const apply = [
    "apply",
    "--index",
    "--whitespace=nowarn",
    ...(prefix === "" ? [] : [`--directory=${prefix}`]),
  ];
  const checked = await git(top, [...apply, "--check"], patch);
  if (checked.code !== 0)
    throw notPossible(
      `The change does not apply to what is checked out, or would touch uncommitted changes: nothing was changed.\n${words(checked)}`,
      "Check out the commit that the session started from, without uncommitted changes in these files.",
    );
  await must(top, ["checkout", "--quiet", "-b", branch]);
  const applied = await git(top, apply, patch);
  if (applied.code !== 0) {
    await git(top, ["checkout", "--quiet", head]);
    await git(top, ["branch", "--quiet", "-D", branch]);
    throw notPossible(`The change could not be applied; you are on ${head} as before.\n${words(applied)}`);
  }
  return { committed: (await git(top, ["commit", "--quiet", "--no-verify", "-F", "-"], message)).code === 0 };
}

async function must(folder: string, args: readonly string[]): Promise<void> {
  const ended = await git(folder, args);
  if (ended.code !== 0) throw notPossible(`git ${args[0]}: ${words(ended)}`);
}

const words = ({ err }: Ended): string => err.trim().split("\n").slice(0, 10).join("\n");

/** The person's own Git and settings, without hooks. */
function git(folder: string, args: readonly string[], input?: string): Promise<Ended> {
  const given = ["-c", "core.hooksPath=/dev/null", ...args];
  return new Promise((resolve, reject) => {
    const child = execFile(
      "git",
      given,
      { cwd: folder, encoding: "utf8", maxBuffer: MAX_OUTPUT_BYTES },
      (error, out, err) => {
        if (error === null) resolve({ code: 0, out, err });
        else if (typeof error.code === "number") resolve({ code: error.code, out, err });
        else reject(error.code === "ENOENT" ? notPossible("Git is not installed here.") : error);
      },
    );
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
  });
}
