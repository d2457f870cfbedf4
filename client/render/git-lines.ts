/** Events about a repository as lines. Pure. */
import type { EventData } from "../../activities/store/event.ts";
import type { Style } from "../console/output.ts";
import { oneLine, plural } from "../console/format.ts";

const SHOWN_COMMIT = 12;

export const gitLines = {
  fetched: ({ url, ref, commit, branch }: EventData["git:fetched"], style: Style): string =>
    style(
      "dim",
      `  ${oneLine(url, 200)} at ${oneLine(ref, 100)} (${commit.slice(0, SHOWN_COMMIT)}), branch ${branch}`,
    ),
  pushed: ({ branch, commit, commits, forced }: EventData["git:pushed"], style: Style): string => {
    const over = forced === true ? ", over commits that an abandoned attempt had pushed" : "";
    return style(
      "green",
      `⇡ ${plural(commits, "commit")} on ${branch} (${commit.slice(0, SHOWN_COMMIT)})${over}`,
    );
  },
  refused: ({ branch, reason }: EventData["git:refused"]): string =>
    `! ${branch} was not delivered: ${oneLine(reason, 500)}`,
  pullRequest: ({ url, created }: EventData["git:pull-request"], style: Style): string =>
    style("green", `⇡ pull request ${created ? "opened" : "updated"}: ${oneLine(url, 300)}`),
  leftOut: ({ count, files }: EventData["git:left-out"]): string =>
    `! not committed: ${oneLine(files.map(({ path }) => path).join(", "), 300)}${count > files.length ? ` and ${count - files.length} more` : ""}`,
};
