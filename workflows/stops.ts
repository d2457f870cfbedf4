/**
 * Tells the workers that activities of this session must stop. Temporal says so too, but only when an activity reports
 * next. No command of the workflow: nothing of it is in the history, and if it is lost, the next report brings the stop.
 */
import { proxySinks, type Sinks } from "@temporalio/workflow";

interface StopSinks extends Sinks {
  readonly stops: { announce(): void };
}

const { stops } = proxySinks<StopSinks>();

export function announceStop(): void {
  stops.announce();
}
