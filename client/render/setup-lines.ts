/** The lines about a project's set-up. Pure. */
import type { EventData } from "../../activities/store/event.ts";
import { duration, oneLine } from "../console/format.ts";
import type { Style } from "../console/output.ts";

const MAX_COMMAND_COLUMNS = 120;
/** Length of the failed command's output. */
const MAX_LINES = 10;

export const setupLines = {
  started: ({ commands }: EventData["setup:started"], style: Style): string =>
    style("dim", `setting up: ${commands.map((each) => oneLine(each, MAX_COMMAND_COLUMNS)).join(" · ")}`),

  built: ({ kept, durationMs }: EventData["setup:built"], style: Style): string =>
    style(
      "dim",
      kept === "taken"
        ? "the Dockerfile's image already exists"
        : `built the Dockerfile's image in ${duration(durationMs)}`,
    ),

  ended(data: EventData["setup:ended"], style: Style): string {
    const { status, durationMs, output, command = "", how = "" } = data;
    if (status === "done") {
      const before = data.kept === "taken" ? ", from the kept set-up" : "";
      const notKept = data.notKept === undefined ? "" : ` (not kept: ${oneLine(data.notKept, 200)})`;
      return style("dim", `set up in ${duration(durationMs)}${before}${notKept}`);
    }
    const last = output
      .split("\n")
      .slice(-MAX_LINES)
      .map((line) => `  ${oneLine(line, MAX_COMMAND_COLUMNS)}`);
    const line = `! set-up failed at ${oneLine(command, MAX_COMMAND_COLUMNS)} (${oneLine(how, 200)})`;
    return style("yellow", [line, ...last].join("\n"));
  },
};
