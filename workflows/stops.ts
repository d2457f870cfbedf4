/**
 * Announces to the workers that activities of this session must stop. Temporal reports this too, but only at an activity's next
 * heartbeat. This is not a workflow command: it is not in the history, and if it is lost, the next heartbeat brings the stop.
 */
import { proxySinks, type Sinks } from "@temporalio/workflow";

interface StopSinks extends Sinks {
  readonly stops: { announce(): void };
}

const { stops } = proxySinks<StopSinks>();

export function announceStop(): void {
  stops.announce();
}
