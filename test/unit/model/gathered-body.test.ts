/** A provider's stream on its way to the SDK: repaired, with its pieces gathered while no one waits for them. */
import { PassThrough, Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import {
  gatheredBody,
  RepairedEvents,
  type StreamReading,
  type StreamEvent,
} from "../../../activities/model/stream-events.ts";
import { ChatStream } from "../../../activities/model/wires/chat.ts";
import { messagesPiece } from "../../../activities/model/wires/messages.ts";
import { responsesPiece } from "../../../activities/model/wires/responses.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const line = (event: StreamEvent) => `event: ${String(event["type"])}\ndata: ${JSON.stringify(event)}\n\n`;
const dataOf = (text: string) =>
  text
    .split("\n")
    .filter((line) => line.startsWith("data:"))
    .map((line) => JSON.parse(line.slice("data:".length)) as StreamEvent);

const said = (delta: string, item = "msg_1") => ({
  type: "response.output_text.delta",
  item_id: item,
  output_index: 0,
  content_index: 0,
  delta,
});

/** The output of a stream that gets these texts, each after the one before it was read. */
async function through(texts: readonly string[], reading: StreamReading | undefined, gatherMs: number) {
  const out: string[] = [];
  const body = gatheredBody(Readable.from(texts.map(bytes)), {
    reading,
    gatherMs: () => gatherMs,
    onBytes: () => undefined,
  });
  for await (const piece of body) out.push(new TextDecoder().decode(piece));
  return out;
}

describe("the pieces of a stream", () => {
  const reading = { piece: responsesPiece };
  const deltas = ["One ", "two ", "three ", "four."];

  it("come as one if they may wait, all but the first, and any other event flushes them", async () => {
    const end = { type: "response.output_text.done", text: deltas.join("") };
    const out = await through([...deltas.map((delta) => line(said(delta))), line(end)], reading, 60_000);
    expect(dataOf(out.join(""))).toEqual([said("One "), said("two three four."), end]);
    // The end was passed on together with the held pieces, at once.
    expect(out).toHaveLength(2);
  });

  it("come one by one if none may wait", async () => {
    const out = await through(
      deltas.map((delta) => line(said(delta))),
      reading,
      0,
    );
    expect(dataOf(out.join(""))).toEqual(deltas.map((delta) => said(delta)));
  });

  it("of different texts are not joined", async () => {
    const events = [said("a"), said("b"), said("c"), said("d", "msg_2")];
    const out = await through(events.map(line), reading, 60_000);
    expect(dataOf(out.join(""))).toEqual([said("a"), said("bc"), said("d", "msg_2")]);
  });

  it("that wait are passed on when their time is up", async () => {
    const source = new PassThrough();
    const reader = gatheredBody(source, {
      reading,
      gatherMs: () => 30,
      onBytes: () => undefined,
    }).getReader();
    // On a busy machine the second chunk may come when the time is over: its two pieces come together also then.
    source.write(bytes(line(said("a"))));
    source.write(bytes(line(said("b")) + line(said("c"))));
    const read = async () => dataOf(new TextDecoder().decode((await reader.read()).value));
    expect(await read()).toEqual([said("a")]);
    // Nothing more comes, and no end.
    expect(await read()).toEqual([said("bc")]);
    await reader.cancel();
  });

  it("are the same text for any chunk boundaries", async () => {
    const whole = [...deltas, "ü€😀"].map((delta) => line(said(delta))).join("");
    const all = bytes(whole);
    for (const size of [1, 3, 7, 50]) {
      const events = new RepairedEvents(reading);
      let text = "";
      for (let at = 0; at < all.length; at += size) text += events.take(all.slice(at, at + size), true);
      text += events.end();
      expect(
        dataOf(text)
          .map(({ delta }) => delta)
          .join(""),
      ).toBe([...deltas, "ü€😀"].join(""));
    }
  });
});

describe("a stream's other events", () => {
  it("are passed through unchanged, with their lines and ends; comments are dropped", async () => {
    const text = `: ping\n\ndata: {"a":1}\r\n\r\ndata: {"b":\ndata: 2}\n\ndata: [DONE]\n\n`;
    const out = (await through([text], { piece: responsesPiece }, 60_000)).join("");
    expect(out).toBe('data: {"a":1}\r\n\ndata: {"b":\ndata: 2}\n\ndata: [DONE]\n\n');
  });

  it("are complete if the last one has no end of its own", async () => {
    const out = await through([`data: {"a":1}`], { repair: (event) => ({ ...event, repaired: true }) }, 0);
    expect(dataOf(out.join(""))).toEqual([{ a: 1, repaired: true }]);
  });

  it.each([
    ["in the middle", ['data: {"a":1}\n\n', "data: more"]],
    ["at the end", ['data: {"a":1}']],
  ])("end the stream with the error of their repair, %s", async (_where, texts) => {
    const repair = () => {
      throw new Error("not repaired");
    };
    await expect(through(texts, { repair }, 0)).rejects.toThrow("not repaired");
  });

  it("are not parsed if pieces are not gathered", async () => {
    expect((await through(["no ", "events"], undefined, 60_000)).join("")).toBe("no events");
  });
});

describe("events that are pieces", () => {
  it("chat: a chunk with one text; not one with a call, an end or a bill", () => {
    const chunk = (delta: object, more: object = {}, beside: object = {}) => ({
      id: "c",
      choices: [{ index: 0, delta, finish_reason: null, ...more }],
      ...beside,
    });
    const { piece } = new ChatStream();
    expect(piece(chunk({ content: "a" }))?.with("ab")).toEqual(chunk({ content: "ab" }));
    expect(piece(chunk({ reasoning_content: "a", content: null }))).toMatchObject({
      of: "reasoning_content",
    });
    expect(piece(chunk({ content: "a", tool_calls: [] }))).toBeUndefined();
    expect(piece(chunk({ content: "a" }, { finish_reason: "stop" }))).toBeUndefined();
    expect(piece(chunk({ content: "a" }, {}, { usage: {} }))).toBeUndefined();
    expect(piece({ choices: [], usage: {} })).toBeUndefined();
  });

  it("messages: text, thinking and arguments of one block; not a signature", () => {
    const block = (delta: object) => ({ type: "content_block_delta", index: 1, delta });
    expect(messagesPiece(block({ type: "text_delta", text: "a" }))?.with("ab")).toEqual(
      block({ type: "text_delta", text: "ab" }),
    );
    expect(messagesPiece(block({ type: "thinking_delta", thinking: "a" }))?.of).toBe("thinking_delta 1");
    expect(messagesPiece(block({ type: "input_json_delta", partial_json: "{" }))?.text).toBe("{");
    expect(messagesPiece(block({ type: "signature_delta", signature: "s" }))).toBeUndefined();
    expect(messagesPiece({ type: "message_stop" })).toBeUndefined();
  });

  it("responses: deltas of texts, summaries and arguments; not their ends", () => {
    const call = {
      type: "response.function_call_arguments.delta",
      item_id: "fc",
      output_index: 1,
      delta: "{",
    };
    expect(responsesPiece(call)?.with('{"a"')).toEqual({ ...call, delta: '{"a"' });
    expect(responsesPiece({ type: "response.output_text.done", text: "a" })).toBeUndefined();
  });
});
