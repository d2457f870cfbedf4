import { expect, it } from "vitest";
import { type FilePart, type Message, filesOf } from "../../../activities/contract/message.ts";
import { ModelError, type ModelErrorClass } from "../../../activities/model/model.ts";
import { FileRefusals } from "../../../activities/model/refusals/files.ts";
import { modelRequest, someAnswer as answer, someEndpoint as endpoint } from "../../support/model-request.ts";

const picture = (name: string, more: Partial<FilePart> = {}): FilePart => ({
  type: "file",
  mediaType: "image/png",
  data: `data:image/png;base64,${name}`,
  filename: name,
  ...more,
});
const user = (...files: readonly FilePart[]): Message => ({ role: "user", content: files });
const result = (...files: readonly FilePart[]): Message => ({
  role: "tool",
  content: [
    {
      type: "tool-result",
      toolCallId: "c",
      toolName: "view_image",
      outcome: "completed",
      text: "Here.",
      files,
    },
  ],
});
const refusal = (message: string, kind: ModelErrorClass = "rejected", status = 400) =>
  new ModelError(`x refuses the request (400): ${message}`, {
    class: kind,
    status,
    cause: { statusCode: status, responseBody: JSON.stringify({ error: { message } }) },
  });

/** A provider that refuses requests with these files. */
function provider(isBad: (files: readonly FilePart[]) => boolean, words: string, status = 400) {
  const kind = status === 413 ? "overflow" : "rejected";
  const refusals = new FileRefusals();
  const asked: string[] = [];
  let shown: readonly Message[] = [];
  const ask = (messages: readonly Message[]) =>
    refusals.ask(modelRequest({ messages }), endpoint, (request) => {
      const files = request.messages.flatMap(filesOf);
      asked.push(files.map(({ filename = "" }) => filename).join(" "));
      shown = request.messages;
      return isBad(files) ? Promise.reject(refusal(words, kind, status)) : Promise.resolve(answer);
    });
  return { ask, asked, shown: () => shown };
}

const holds = (name: string) => (files: readonly FilePart[]) =>
  files.some(({ filename }) => filename === name);

it("shows words in the place of the newest image, and of it alone, from then on", async () => {
  const damaged = provider(holds("b"), "Could not process image");
  const messages = [user(picture("a")), result(picture("b"))];
  expect((await damaged.ask(messages)).refusedParts).toEqual([
    {
      mediaType: "image/png",
      filename: "b",
      why: "x refuses the request (400): Could not process image",
      isNew: true,
    },
  ]);
  expect(damaged.asked).toEqual(["a b", "a"]);
  expect(damaged.shown()[1]?.content[0]).toMatchObject({
    text: "Here.\n[b (image/png) is not shown. x refuses the request (400): Could not process image]",
  });
  expect((await damaged.ask([...messages, result(picture("c"))])).refusedParts).toMatchObject([
    { isNew: false },
  ]);
  expect(damaged.asked.at(-1)).toBe("a c");
});

it("looks for one among several, and the same image twice is one", async () => {
  const damaged = provider(holds("a"), "Provided image is not valid.");
  await damaged.ask([user(picture("a"), picture("b")), result(picture("c"))]);
  expect(damaged.asked).toEqual(["a b c", "a b", "a c", "b c"]);
  const twice = provider(holds("a"), "Could not process image");
  const { refusedParts } = await twice.ask([user(picture("a")), result(picture("a"))]);
  expect(refusedParts).toHaveLength(1);
  expect(twice.asked).toEqual(["a a", ""]);
});

it.each([
  [
    "pixels",
    "messages.7.content.2.image.source.base64.data: At least one of the image dimensions exceed max allowed size: 8000 pixels",
    picture("a", { width: 100, height: 9_000 }),
  ],
  [
    "bytes",
    "messages.58.content.2.image.source.base64: image exceeds 5 MB maximum: 600 bytes > 500 bytes",
    picture("a", { data: `data:image/png;base64,${"x".repeat(600)}` }),
  ],
])("leaves out at once what is beyond a limit of %s", async (_what, words, first) => {
  await expectLeftOut(words, first);
});

it.each([
  "At most 5 image(s) may be provided in one request.",
  "Too many images in request. Max is 5.",
  "request contains 6 images, exceeding the maximum of 5 allowed per request",
  "too many images and documents: 6 + 0 > 5",
  "Too much media: 0 document pages + 6 images > 5",
  "You set image=5 (or defaulted to 1) in `--limit-mm-per-prompt`, but passed 6 image items in the same prompt.",
])("leaves out the oldest at once if they are too many: %s", async (words) => {
  await expectLeftOut(words, picture("a"));
});

async function expectLeftOut(words: string, first: FilePart) {
  const strict = provider(holds("a"), words);
  const others = ["b", "c", "d", "e", "f"];
  await strict.ask([user(first), result(...others.map((name) => picture(name, { width: 10, height: 10 })))]);
  expect(strict.asked).toEqual(["a b c d e f", "b c d e f"]);
}

it("counts no PDF among the images", async () => {
  const strict = provider(holds("a"), "At most 1 image(s) may be provided in one request.");
  const pdf = picture("p", { mediaType: "application/pdf" });
  await strict.ask([user(pdf, picture("a")), result(picture("b"))]);
  expect(strict.asked).toEqual(["p a b", "p b"]);
});

it("tries the newest and all if the refusal says nothing, one by one if all are too large", async () => {
  const messages = [user(picture("a"), picture("b")), result(picture("c"))];
  const silent = provider(holds("b"), "Request contains an invalid argument.");
  await silent.ask(messages);
  expect(silent.asked).toEqual(["a b c", "a b", ""]);
  const small = provider((files) => files.length > 2, "", 413);
  await small.ask(messages);
  expect(small.asked).toEqual(["a b c", "a b"]);
});

it("leaves out all if the model takes none", async () => {
  const blind = provider((files) => files.length > 0, "No endpoints found that support image input");
  const names = ["a", "b", "c", "d", "e", "f"];
  await blind.ask([user(...names.map((name) => picture(name)))]);
  expect(blind.asked.at(-1)).toBe("");
  await blind.ask([user(...names.map((name) => picture(name)))]);
  expect(blind.asked).toHaveLength(7);
});

it.each([
  ["another refusal", refusal("Invalid value: 'x'.")],
  ["words that only look so", refusal("This model needs provisioned throughput.")],
  ["a limit of the rate", refusal("Too many images a minute", "rate-limit")],
])("hands on %s after one request", async (_what, error) => {
  let count = 0;
  const asked = new FileRefusals().ask(modelRequest({ messages: [user(picture("a"))] }), endpoint, () => {
    count += 1;
    return Promise.reject(error);
  });
  await expect(asked).rejects.toBe(error);
  expect(count).toBe(1);
});

it("fails with the first refusal if no file is its reason", async () => {
  const strict = provider(() => true, "The image is fine, but not the rest.");
  await expect(strict.ask([user(picture("a"), picture("b"))])).rejects.toMatchObject({ class: "rejected" });
  expect(strict.asked).toEqual(["a b", "a", "b", ""]);
});
