/** The note to the model when the disk limit was reached. Pure. */
import type { CommandState, DiskFacts } from "../sandbox/sandbox.ts";
import { showSize } from "./paths.ts";

/** Exit code of a shell whose program the kernel killed for exceeding the largest file size: 128 + SIGXFSZ. */
const FILE_TOO_LARGE = 153;

/** A line about the disk, if the disk affected how the command went; otherwise undefined. */
export function diskNote(state: CommandState): string | undefined {
  if (state.disk !== undefined) {
    return state.kind === "killed" && state.by === "disk"
      ? `[ended, with everything that ran in the sandbox: ${reached(state.disk)}. ${FREE}]`
      : `[no file could grow in this command: ${reached(state.disk)}. ${FREE}]`;
  }
  const tooLarge =
    (state.kind === "exited" && state.exitCode === FILE_TOO_LARGE) ||
    (state.kind === "killed" && state.signal === "SIGXFSZ");
  return tooLarge
    ? "[a file would have grown larger than the sandbox's whole disk limit (sandbox.disk), so the program that wrote it was ended]"
    : undefined;
}

const FREE =
  "No file can grow until something is deleted: look with du -xh /workspace ~ | sort -h | tail, then rm what can be made again";

function reached({ usedBytes, unseenBytes = 0, limitBytes, freeBytes }: DiskFacts): string {
  if (usedBytes <= limitBytes)
    return `the host's disk is nearly full, ${showSize(freeBytes)} left (sandbox.diskFree)`;
  const over = `its files take more than the ${showSize(limitBytes)} of its disk limit (sandbox.disk)`;
  return unseenBytes === 0
    ? over
    : `${over}, ${showSize(unseenBytes)} of them where they cannot be counted, such as deleted files that a process holds`;
}
