/** Activities that do nothing but note when they began. */
import { Context } from "@temporalio/activity";
import { now } from "../stand/channel.ts";

const starts = new Map<string, number[]>();

export const yardstickActivities = {
  think: async (_step: number): Promise<void> => {
    const id = Context.current().info.workflowExecution?.workflowId ?? "";
    starts.set(id, [...(starts.get(id) ?? []), now()]);
  },
  perform: async (_step: number): Promise<void> => {},
};
export type YardstickActivities = typeof yardstickActivities;

/** When each `think` of a workflow began. */
export function thinkStarts(id: string): readonly number[] {
  return starts.get(id) ?? [];
}
