/** What is in a workspace now, and what of it has content at hand. Two ways, by what the image has. */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { runWorkspaceProgram, type ProgramBox } from "./workspace-program.ts";
import {
  FIND_FORMAT,
  MAX_FILE_BYTES,
  parseListing,
  REBUILT_FOLDERS,
  type ManifestEntry,
  type Skipped,
} from "./workspace-manifest.ts";
import { readTar } from "./workspace-pack.ts";
import { textOfBytes } from "./path-text.ts";

export interface Survey {
  readonly entries: ManifestEntry[];
  readonly skipped: Skipped[];
  /** Of all files, where the survey had to read them; else they are read when they are packed. */
  readonly content: ReadonlyMap<string, Uint8Array> | undefined;
}

/**
 * A file that was written so shortly before it was looked at may be written again without its times telling: kernels
 * keep them by their tick, which is at most 10 ms.
 */
const TICK_MS = 20;
const MAX_LOOKS = 3;

const FOLDERS = REBUILT_FOLDERS.flatMap((name, at) => [...(at === 0 ? [] : ["-o"]), "-name", name]);
const NOT_REBUILT = ["-type", "d", "(", ...FOLDERS, ")", "-prune", "-o"];
const LIST = ["find", ".", "-mindepth", "1", ...NOT_REBUILT, "-type", "f,d,l", "-printf", FIND_FORMAT];

/** In blocks of 512 bytes, as POSIX has it: `-size N` is exactly so many, rounded up. */
const MAX_BLOCKS = MAX_FILE_BYTES / 512;
const NOT_LARGE = [
  "(",
  "-type",
  "d",
  "-o",
  "-type",
  "l",
  "-o",
  "-type",
  "f",
  "!",
  "-size",
  `+${MAX_BLOCKS}`,
  ")",
];
const READ_ALL = [
  "find",
  ".",
  ...NOT_REBUILT,
  ...NOT_LARGE,
  "-exec",
  "tar",
  "-cf",
  "-",
  "--no-recursion",
  "{}",
  "+",
];
const TOO_LARGE = ["find", ".", ...NOT_REBUILT, "-type", "f", "-size", `+${MAX_BLOCKS}`, "-print0"];

/** By box, since the answer does not change. */
const kinds = new WeakMap<ProgramBox, Promise<boolean>>();

/** True where find prints times and tar, gzip and xargs take names of any kind: the quick way. */
export function hasGnuTools(box: ProgramBox): Promise<boolean> {
  const script =
    "find . -maxdepth 0 -printf x 2>/dev/null && tar --version && command -v gzip && command -v xargs";
  const known =
    kinds.get(box) ??
    runWorkspaceProgram(box, ["sh", "-c", script], { highestExitCode: 127 }).then(({ output }) => {
      const said = Buffer.from(output).toString();
      return said.startsWith("x") && said.includes("GNU tar") && /gzip\n.*xargs\n/.test(said);
    });
  kinds.set(box, known);
  known.catch(() => kinds.delete(box));
  return known;
}

/**
 * What is there now. Files that are written all the time are marked (`?`), so that they count as changed the next time.
 * @throws SandboxUnavailable (retryable); SandboxLost
 */
export async function surveyWorkspace(box: ProgramBox): Promise<Survey> {
  if (!(await hasGnuTools(box))) return readEverything(box);
  for (let looks = 1; ; looks += 1) {
    const { output, startedAtMs } = await runWorkspaceProgram(box, LIST, { highestExitCode: 1 });
    const { entries, skipped } = parseListing(output);
    const isFresh = ({ kind, ctime }: ManifestEntry): boolean =>
      kind === "file" && Number(ctime) * 1_000 > startedAtMs - TICK_MS;
    if (!entries.some(isFresh)) return { entries, skipped, content: undefined };
    if (looks < MAX_LOOKS) await sleep(TICK_MS);
    else {
      const marked = entries.map((entry) => (isFresh(entry) ? { ...entry, ctime: "?" } : entry));
      return { entries: marked, skipped, content: undefined };
    }
  }
}

/** With sh, find and tar of any make: everything is read each time, and told apart by its content. */
async function readEverything(box: ProgramBox): Promise<Survey> {
  const { output } = await runWorkspaceProgram(box, READ_ALL, { highestExitCode: 1 });
  const large = await runWorkspaceProgram(box, TOO_LARGE, { highestExitCode: 1 });
  const content = new Map<string, Uint8Array>();
  const entries: ManifestEntry[] = [];
  for await (const { entry, bytes } of readTar(output)) {
    const ctime = entry.kind === "file" ? createHash("sha256").update(bytes).digest("hex").slice(0, 32) : "";
    entries.push({ ...entry, ctime });
    if (entry.kind === "file") content.set(entry.path, bytes);
  }
  const skipped = textOfBytes(large.output)
    .split("\0")
    .filter((path) => path !== "")
    .map((path): Skipped => ({
      path: path.replace(/^\.\//, ""),
      bytes: MAX_FILE_BYTES,
      reason: "too-large",
    }));
  return { entries: entries.toSorted((a, b) => (a.path < b.path ? -1 : 1)), skipped, content };
}
