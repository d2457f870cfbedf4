/** Events about delegates as lines. Pure. */
import type { EventData } from "../../activities/store/event.ts";
import { dollars, oneLine, plural } from "../console/format.ts";
import type { Style } from "../console/output.ts";

export const delegateLines = {
  started: ({ childId, about }: EventData["delegate:started"], style: Style): string =>
    `${style("cyan", "⇢ delegated:")} ${oneLine(about, 120)} ${style("dim", `(${childId})`)}`,
  ended: (
    { childId, status, steps, costUsd, applied }: EventData["delegate:ended"],
    style: Style,
  ): string => {
    const parts = [
      status,
      plural(steps, "step"),
      ...(costUsd === null ? [] : [dollars(costUsd)]),
      ...(applied.length === 0 ? [] : [`${plural(applied.length, "file")} applied`]),
    ];
    return `${style("cyan", `⇠ ${childId}:`)} ${parts.join(", ")}`;
  },
  /** Undefined if all were merged. */
  notApplied: ({ notApplied }: EventData["delegate:ended"]): string | undefined =>
    notApplied.length === 0
      ? undefined
      : `! not applied: ${oneLine(notApplied.map(({ path, reason }) => `${path} (${reason})`).join(", "), 500)}`,
};
