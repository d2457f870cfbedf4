/** Reads a provider's stream to its end and turns it into an answer. */
import { AnswerCollector, finishOf } from "./answer-collector.ts";
import { ModelError, type ModelAnswer, type ModelDelta, type ModelRequest } from "./model.ts";
import { fullModelName } from "../config/providers.ts";
import type { ProviderPart } from "./provider-model.ts";
import { reportedCostUsd, trustedUsage } from "./usage.ts";
import type { Watchdog } from "./watchdog.ts";
import type { KeptReasoning } from "./wires/chat-stream.ts";

interface End {
  readonly reason: string;
  readonly usage: ModelAnswer["usage"];
  readonly costUsd: number | undefined;
}

export class AnswerReader {
  /** By `performance.now()`; undefined until a piece of the answer has arrived. */
  firstTokenAt: number | undefined;
  #end: End | undefined;
  readonly #collector: AnswerCollector;
  readonly #watchdog: Watchdog;
  readonly #contextWindow: number;

  constructor({ target }: ModelRequest, onDelta: (delta: ModelDelta) => void, watchdog: Watchdog) {
    this.#collector = new AnswerCollector(fullModelName(target.model), onDelta);
    this.#watchdog = watchdog;
    this.#contextWindow = target.contextWindow;
  }

  /** Returns at the stream's end or once `signal` is aborted. */
  async read(stream: ReadableStream<ProviderPart>, signal: AbortSignal): Promise<void> {
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      this.#take(value);
    }
  }

  /**
   * @param startedAt when the request began, by `performance.now()`
   * @throws {ModelError} if the stream ended before its answer was complete
   */
  answer(startedAt: number, kept: KeptReasoning | undefined, tier: string | undefined): ModelAnswer {
    // The packages report `interrupted` for a stream that closed without the provider's last event.
    if (this.#end === undefined || this.#end.reason === "interrupted") throw cutOff();
    const { reason, usage, costUsd } = this.#end;
    const content = this.#collector.content(kept);
    const durationMs = performance.now() - startedAt;
    return {
      content,
      finish: finishOf(reason, content),
      usage,
      ...(costUsd === undefined ? {} : { costUsd }),
      ...(tier === undefined ? {} : { tier }),
      firstTokenMs: (this.firstTokenAt ?? startedAt + durationMs) - startedAt,
      durationMs,
    };
  }

  #take(part: ProviderPart): void {
    if (part.type === "error") throw isCutOff(part.error) ? cutOff() : part.error;
    const heard = this.#collector.take(part);
    if (heard === "thinking") this.#watchdog.thinking();
    if (heard === "piece") {
      this.firstTokenAt ??= performance.now();
      this.#watchdog.heard();
    }
    if (part.type === "finish") {
      this.#end = {
        reason: part.finishReason.unified,
        usage: trustedUsage(part.usage, this.#contextWindow),
        costUsd: reportedCostUsd(part.usage),
      };
    }
  }
}

const cutOff = () =>
  new ModelError("The provider's stream ended before its answer was complete.", { class: "unavailable" });

/** The chat adapter's message for a stream that ended early. */
function isCutOff(error: unknown): boolean {
  return error instanceof Error && error.message.includes("ended without a finish reason");
}
