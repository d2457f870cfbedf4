/** The person's own Git, with their settings, and without hooks. */
import { execFile } from "node:child_process";
import { notPossible } from "../console/errors.ts";

const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;
const MAX_LINES = 20;

export interface Ended {
  readonly code: number;
  readonly out: Buffer;
  readonly err: string;
}

/** @throws ClientError (impossible) if there is no Git */
export function git(folder: string, args: readonly string[], input?: string | Uint8Array): Promise<Ended> {
  const given = ["-c", "core.hooksPath=/dev/null", ...args];
  return new Promise((resolve, reject) => {
    const child = execFile(
      "git",
      given,
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
): Promise<Buffer> {
  const ended = await git(folder, args, input);
  const name = args.find((word) => !word.startsWith("-")) ?? "";
  if (ended.code !== 0) throw notPossible(`git ${name}: ${words(ended)}`);
  return ended.out;
}

/** What Git said, whole but for blank lines and what no person reads. */
export function words({ code, err }: Ended): string {
  const lines = err.split("\n").filter((line) => line.trim() !== "");
  return lines.length === 0 ? `it ended with code ${code}` : lines.slice(-MAX_LINES).join("\n");
}
