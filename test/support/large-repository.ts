/** A repository of many files, made by Git's own import: sizes vary by a factor of a hundred, the text comes from a small pool. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { gitIn } from "./remotes.ts";

const WORDS = "import export const return value index order total the of state parse render commit".split(
  " ",
);
const FILES_IN_FOLDER = 8;

/**
 * @param folder an empty one, which becomes a bare repository with one commit on main
 * @param meanBytes of a file
 */
export async function makeLargeRepository(
  folder: string,
  { files, meanBytes }: { readonly files: number; readonly meanBytes: number },
): Promise<void> {
  gitIn(folder, "init", "-q", "--bare", "-b", "main", ".");
  const git = spawn("git", ["fast-import", "--quiet"], { cwd: folder, stdio: ["pipe", "ignore", "inherit"] });
  const ended = once(git, "exit");
  for (const piece of commitOf(files, meanBytes)) if (!git.stdin.write(piece)) await once(git.stdin, "drain");
  git.stdin.end();
  const [code] = (await ended) as [number];
  if (code !== 0) throw new Error(`git fast-import ended with ${code}.`);
}

function* commitOf(files: number, meanBytes: number): Generator<string> {
  yield "commit refs/heads/main\ncommitter Ada <ada@example.org> 1790000000 +0000\ndata 5\nFirst\n";
  let seed = 1;
  const next = (): number => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647;
  for (let at = 0; at < files; at += 1) {
    const folder = Math.floor(at / FILES_IN_FOLDER);
    const path = `d${folder % 97}/e${folder % 89}/f${folder}/file${at}.ts`;
    // The mean of 10^(2u-1) is 2.15.
    const size = Math.round((meanBytes * 10 ** (2 * next() - 1)) / 2.15);
    const lines: string[] = [`// ${at}`];
    for (let length = 0; length < size; length += (lines.at(-1)?.length ?? 0) + 1)
      lines.push(Array.from({ length: 8 }, () => WORDS[Math.floor(next() * WORDS.length)]).join(" "));
    const text = `${lines.join("\n")}\n`;
    yield `M 644 inline ${path}\ndata ${Buffer.byteLength(text)}\n${text}\n`;
  }
}
