/** The person's own Git, with their settings, and without hooks. */
import { execFile } from "node:child_process";
import { notPossible } from "../console/errors.ts";

const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;
const MAX_LINES = 20;

/** A person's checkout. */
export interface Checkout {
  readonly top: string;
  /** Of this working tree. */
  readonly gitFolder: string;
  /** What its working trees share. */
  readonly commonFolder: string;
  /** The current folder, from the top: empty or with a final `/`. */
  readonly prefix: string;
}

export interface Ended {
  readonly code: number;
  readonly out: Buffer;
  readonly err: string;
}

/**
 * It takes no lock only to remember what it saw.
 * @param index instead of the checkout's own
 * @throws ClientError (impossible) if there is no Git
 */
export function git(
  folder: string,
  args: readonly string[],
  input?: string | Uint8Array,
  index?: string,
): Promise<Ended> {
  const given = ["--no-optional-locks", "-c", "core.hooksPath=/dev/null", ...args];
  const command = index === undefined ? ["git"] : ["env", `GIT_INDEX_FILE=${index}`, "git"];
  const [program = "git", ...all] = [...command, ...given];
  return new Promise((resolve, reject) => {
    const child = execFile(
      program,
      all,
      { cwd: folder, encoding: "buffer", maxBuffer: MAX_OUTPUT_BYTES },
      (error, out, stderr) => {
        const err = stderr.toString();
        if (error === null) resolve({ code: 0, out, err });
        else if (typeof error.code === "number") resolve({ code: error.code, out, err });
        else reject(error.code === "ENOENT" ? notPossible("Git is not installed here.") : error);
      },
    );
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(input);
  });
}

/** As `git`, of which success is expected. @throws ClientError (impossible) with Git's words */
export async function mustGit(
  folder: string,
  args: readonly string[],
  input?: string | Uint8Array,
  index?: string,
): Promise<Buffer> {
  const ended = await git(folder, args, input, index);
  const name = args.find((word) => !word.startsWith("-")) ?? "";
  if (ended.code !== 0) throw notPossible(`git ${name}: ${words(ended)}`);
  return ended.out;
}

/** What Git said, whole but for blank lines and what no person reads. */
export function words({ code, err }: Ended): string {
  const lines = err.split("\n").filter((line) => line.trim() !== "");
  return lines.length === 0 ? `it ended with code ${code}` : lines.slice(-MAX_LINES).join("\n");
}
