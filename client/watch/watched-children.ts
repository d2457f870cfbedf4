/** The delegates of a watched session, each followed from its beginning to its end in parallel with its parent. */
import { setTimeout as sleep } from "node:timers/promises";
import type { SessionEvent } from "../../activities/store/event.ts";
import { describeRun } from "../connect/describe-run.ts";
import { PlainAnswer } from "../render/answers.ts";
import { Renderer } from "../render/renderer.ts";
import { follow } from "./follow.ts";
import type { Show, Watch } from "./show.ts";

type Options = Pick<Watch, "services" | "sessionId" | "json" | "output">;

/** Time to wait for the delegates' remaining events when the parent ends. */
const LAST_WORDS_MS = 3_000;

export class WatchedChildren {
  readonly #options: Options;
  readonly #show: Show;
  readonly #over = new AbortController();
  readonly #followed = new Map<string, Promise<void>>();

  constructor(options: Options, show: Show) {
    this.#options = options;
    this.#show = show;
  }

  /** Call with each event of the parent. */
  follow({ type, data }: SessionEvent): void {
    if (type !== "delegate:started") return;
    const { childId } = data as SessionEvent<"delegate:started">["data"];
    if (!this.#followed.has(childId)) this.#followed.set(childId, this.#followChild(childId));
  }

  /** Waits briefly for the last events: delegates end before their parent, but one that a person resumed continues. */
  async ended(): Promise<void> {
    await Promise.race([
      Promise.all(this.#followed.values()),
      sleep(LAST_WORDS_MS, undefined, { ref: false }),
    ]);
    this.close();
  }

  close(): void {
    this.#over.abort();
  }

  async #followChild(childId: string): Promise<void> {
    const { services, json, output } = this.#options;
    const show = json ? (event: SessionEvent) => output.json(event) : this.#lines(childId);
    for await (const item of follow({
      store: services.store,
      sessionId: childId,
      afterSeq: 0,
      signal: this.#over.signal,
      describe: () => describeRun(services.temporal, childId),
    })) {
      if (item.kind === "event") show(item.event);
    }
  }

  /** Prints whole lines, each labelled with its call: otherwise, pieces of several answers would mix. */
  #lines(childId: string): (event: SessionEvent) => void {
    const { output, sessionId } = this.#options;
    const name = output.style("dim", `${childId.slice(sessionId.length + 1)} │ `);
    let line = "";
    const write = (text: string) => {
      const lines = `${line}${text}`.split("\n");
      line = lines.pop() ?? "";
      for (const whole of lines.filter((text) => text.trim() !== "")) this.#show.note(`${name}${whole}`);
    };
    const { style, columns } = output;
    const renderer = new Renderer({ write, style, columns, answer: new PlainAnswer(write, undefined) });
    return (event) => {
      if (event.type !== "llm:chunk") renderer.event(event);
    };
  }
}
