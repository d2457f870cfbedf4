/** Counts the spans that never arrive: the library's processor drops waiting ones silently. */
import type { SpanExporter } from "@opentelemetry/sdk-trace";

interface Losses {
  readonly exporter: SpanExporter;
  /** Spans dropped so far. */
  readonly dropped: number;
  /** Spans that still wait or are being sent. */
  readonly left: number;
  /** Counts one more span as waiting, or as dropped if there is no room. @returns whether there was room */
  takes(): boolean;
}

/** The codes of `ExportResultCode`, which is in a package that is not ours to import. */
const SUCCESS = 0;

/** @param report called with each loss, with why */
export function countLosses(
  inner: SpanExporter,
  maxWaiting: number,
  report: (reason: string) => void,
): Losses {
  let waiting = 0;
  let underWay = 0;
  let dropped = 0;
  let isFull = false;
  const losses: Losses = {
    get dropped() {
      return dropped;
    },
    get left() {
      return waiting + underWay;
    },
    takes() {
      if (waiting < maxWaiting) {
        isFull = false;
        waiting += 1;
        return true;
      }
      dropped += 1;
      // Once for each time that it fills up, not for each span.
      if (!isFull) report(`${maxWaiting} spans wait already`);
      isFull = true;
      return false;
    },
    exporter: {
      export(spans, done) {
        waiting -= spans.length;
        underWay += spans.length;
        inner.export(spans, (result) => {
          underWay -= spans.length;
          if (result.code !== SUCCESS) {
            dropped += spans.length;
            report(result.error?.message ?? "the endpoint refused them");
          }
          done(result);
        });
      },
      shutdown: () => inner.shutdown(),
    },
  };
  return losses;
}
