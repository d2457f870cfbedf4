/** What histories and requests say about the line of a run. Pure. */
import type { WireItem } from "../model-server/wire.ts";
import type { HistoryEvent } from "../reset-run.ts";

/** Steps whose answers a history has. */
export function answeredIn(events: readonly HistoryEvent[]): number[] {
  const steps = new Map(
    events.flatMap((event) => {
      const scheduled = event.activityTaskScheduledEventAttributes;
      const data = scheduled?.input?.payloads?.[0]?.data;
      if (scheduled?.activityType?.name !== "modelStep" || !data) return [];
      return [
        [String(event.eventId), (JSON.parse(Buffer.from(data).toString()) as { step: number }).step] as const,
      ];
    }),
  );
  return events.flatMap((event) => {
    const completion = event.activityTaskCompletedEventAttributes;
    const step = steps.get(String(completion?.scheduledEventId));
    const data = completion?.result?.payloads?.[0]?.data;
    if (step === undefined || !data) return [];
    const { kind } = JSON.parse(Buffer.from(data).toString()) as { kind: string };
    return kind === "answered" || kind === "interrupted" ? [step] : [];
  });
}

const ADDED = /went back|Please go on|The sandbox was|The files in|The user's own/;

/** Whoever asks for a step after the same answers asks with the same words, apart from notices and messages that wait again. */
export function compareViews(
  views: Map<string, string>,
  items: readonly WireItem[],
  step: number,
  wrong: (what: string) => void,
): void {
  const lines = items.map((item) => JSON.stringify(item)).filter((item) => !ADDED.test(item));
  const path = lines.flatMap((item) => item.match(/Step \d+\. Line \d+\./) ?? []).join(" ");
  const key = `${step} after ${path}`;
  const view = lines.join("\n").replaceAll(/"callId":"[^"]*"|(?<=\.s\d+c\d+)e\d+/g, "");
  const known = views.get(key);
  if (known === undefined) views.set(key, view);
  else if (known !== view) {
    const [a, b] = [known.split("\n"), view.split("\n")];
    const position = a.findIndex((item, index) => item !== b[index]);
    wrong(`another view of step ${key}: ${b[position]?.slice(0, 300)} for ${a[position]?.slice(0, 300)}`);
  }
}
