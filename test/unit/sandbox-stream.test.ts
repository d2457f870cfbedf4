import { Duplex, PassThrough } from "node:stream";
import { afterEach, describe, expect, test, vi } from "vitest";
import { StreamEnded, SupervisorStream } from "../../activities/sandbox/docker/supervisor-stream.ts";

/** A piece of Docker's multiplexed stream. */
function piece(channel: number, text: string): Buffer {
  const body = Buffer.from(text);
  const head = Buffer.alloc(8);
  head[0] = channel;
  head.writeUInt32BE(body.length, 4);
  return Buffer.concat([head, body]);
}

function connect() {
  const [toSandbox, fromSandbox] = [new PassThrough(), new PassThrough()];
  const stream = new SupervisorStream(Duplex.from({ readable: fromSandbox, writable: toSandbox }));
  let sent = "";
  toSandbox.on("data", (chunk: Buffer) => (sent += chunk.toString()));
  const requests = (): { q: number; op: string; of?: number }[] =>
    sent
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line));
  return { stream, fromSandbox, requests };
}

test("answers are matched to their requests, in any order and any chunks", async () => {
  const { stream, fromSandbox } = connect();
  const answers = [stream.request("a", {}), stream.request("b", {}), stream.request("c", {})];
  const lines = Buffer.concat([
    piece(1, '{"q":3,"ok":{"is":"c"}}\n{"q":1,"ok":{"i'),
    piece(1, 's":"ä"}}\n'),
    piece(2, "noise on standard error"),
    piece(1, '{"q":2,"error":"no"}\n'),
  ]);
  for (const byte of lines) fromSandbox.write(Buffer.from([byte]));
  expect(await answers[0]).toEqual({ is: "ä" });
  expect(await answers[2]).toEqual({ is: "c" });
  await expect(answers[1]).rejects.toThrow("no");
});

test("progress is passed on, and anything after the answer is not", async () => {
  const { stream, fromSandbox } = connect();
  const progress: number[] = [];
  const answer = stream.request("wait", {}, { onBytes: (bytes) => progress.push(bytes) });
  fromSandbox.write(piece(1, '{"q":1,"bytes":5}\n{"q":1,"bytes":9}\n{"q":1,"ok":{}}\n{"q":1,"bytes":12}\n'));
  await answer;
  expect(progress).toEqual([5, 9]);
});

test("an aborted request is withdrawn and leaves the stream usable", async () => {
  const { stream, fromSandbox, requests } = connect();
  const abort = new AbortController();
  const waiting = stream.request("wait", {}, { signal: abort.signal });
  abort.abort(new Error("enough"));
  await expect(waiting).rejects.toThrow("enough");
  const next = stream.request("ping", {});
  fromSandbox.write(piece(1, '{"q":1,"ok":{}}\n{"q":3,"ok":{"fine":true}}\n'));
  expect(await next).toEqual({ fine: true });
  expect(requests()).toMatchObject([{ op: "wait" }, { op: "unwait", of: 1 }, { op: "ping" }]);
});

test("when the stream ends, every waiting request fails with the other side's last output", async () => {
  const { stream, fromSandbox } = connect();
  const waiting = stream.request("wait", {});
  fromSandbox.end(piece(2, "python3: not found\n"));
  await expect(waiting).rejects.toThrow("python3: not found");
  await expect(stream.request("ping", {})).rejects.toBeInstanceOf(StreamEnded);
  expect(stream.ended).toBe(true);
});

test("invalid output ends the stream", async () => {
  const { stream, fromSandbox } = connect();
  const waiting = stream.request("wait", {});
  fromSandbox.write(piece(1, "Segmentation fault\n"));
  await expect(waiting).rejects.toBeInstanceOf(StreamEnded);
});

describe("a clock that jumps", () => {
  afterEach(() => vi.useRealTimers());

  test.each([3_600_000, -3_600_000])(
    "by %i ms ends no stream and no request",
    { tags: ["R46"] },
    async (jumpMs) => {
      vi.useFakeTimers({ toFake: ["Date", "setInterval", "clearInterval"] });
      const { stream, fromSandbox, requests } = connect();
      const answer = stream.request("wait", {});
      vi.setSystemTime(Date.now() + jumpMs);
      // The next check of whether the other side is alive.
      vi.advanceTimersByTime(16_000);
      expect(stream.ended).toBe(false);
      expect(requests().map(({ op }) => op)).toEqual(["wait", "ping"]);
      fromSandbox.write(piece(1, '{"q":1,"ok":{"is":"here"}}\n'));
      expect(await answer).toEqual({ is: "here" });
    },
  );
});

test("a line without an end ends the stream before it fills the worker's memory", async () => {
  const { stream, fromSandbox } = connect();
  const answer = stream.request("a", {});
  answer.catch(() => undefined);
  const block = piece(1, "x".repeat(1 << 20));
  let sent = 0;
  while (!stream.ended && sent < 300) {
    sent += 1;
    if (!fromSandbox.write(block)) await new Promise((done) => setImmediate(done));
  }
  await expect(answer).rejects.toThrow("an answer that is too long");
  expect(sent).toBeLessThan(200);
});

test("what comes unasked may be shorter still", async () => {
  const { stream, fromSandbox } = connect();
  for (let sent = 0; !stream.ended && sent < 20; sent += 1) {
    fromSandbox.write(piece(1, "x".repeat(1 << 18)));
    await new Promise((done) => setImmediate(done));
  }
  expect(stream.ended).toBe(true);
});
