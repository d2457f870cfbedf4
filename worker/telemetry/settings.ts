/** How telemetry is sent. Read from the environment by worker/config.ts. */

export interface TelemetrySettings {
  readonly withContent: boolean;
  readonly traces: boolean;
  readonly metrics: boolean;
  /** How long spans are gathered before they are sent, in ms. */
  readonly scheduleMs: number;
  /** How often metrics are sent, in ms. */
  readonly intervalMs: number;
}
