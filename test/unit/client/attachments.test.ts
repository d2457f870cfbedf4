import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import {
  attachedText,
  cleanAttachment,
  readAttachments,
  requireTextRoom,
} from "../../../client/sessions/attachments.ts";
import { emptyFolder } from "../../support/empty-folder.ts";
import { DOT_PNG } from "../../support/images.ts";

const folder = emptyFolder(afterAll);
const at = (name: string) => join(folder, name);

it("reads no device and waits for no pipe that is named as an image", async () => {
  symlinkSync("/dev/null", at("device.png"));
  await expect(readAttachments({ images: [at("device.png")] })).rejects.toThrow(
    /device\.png is not a regular file/,
  );
});

it("reads no file that is too large", async () => {
  writeFileSync(at("large.png"), "");
  truncateSync(at("large.png"), 2 ** 40);
  await expect(readAttachments({ images: [at("large.png")] })).rejects.toThrow(/has 1099511627776 bytes/);
});

it.each([
  ["nothing.png", "", /has 0 bytes/],
  ["text.png", "%PDF", /is not a PNG/],
  ["notes.txt", "", /is not one of/],
])("says what is wrong with %s", async (name, content, reason) => {
  writeFileSync(at(name), content);
  await expect(readAttachments({ images: [at(name)] })).rejects.toThrow(reason);
});

it("says which is a folder, or missing", async () => {
  mkdirSync(at("folder.png"));
  await expect(readAttachments({ images: [at("folder.png")] })).rejects.toThrow(/is a folder/);
  await expect(readAttachments({ images: [at("gone.png")] })).rejects.toThrow(/does not exist/);
});

it("takes text by its content, whatever its name, in UTF-8 and UTF-16", async () => {
  const texts = ["plain\n", "Grüße 日本 🎉", "\uFEFFwith a mark", "a\r\nb\tc"];
  const wide = (text: string, swap: boolean) => {
    const bytes = Buffer.from(`\uFEFF${text}`, "utf16le");
    return swap ? bytes.swap16() : bytes;
  };
  const sources = texts.flatMap((text) => [
    { name: "notes", bytes: Buffer.from(text) },
    { name: "notes.csv", bytes: wide(text.replace("\uFEFF", ""), false) },
    { name: "notes.exe", bytes: wide(text.replace("\uFEFF", ""), true) },
  ]);
  const read = await readAttachments({ files: sources });
  expect(read.map(attachedText)).toEqual(
    sources.map(({ name }, at) => {
      const text = (texts[Math.floor(at / 3)] ?? "").replace("\uFEFF", "");
      return `<file name="${name}">\n${text.replace(/\n$/, "")}\n</file>`;
    }),
  );
});

it("takes pictures as files, too, by their content", async () => {
  const [picture] = await readAttachments({ files: [{ name: "no-picture.txt", bytes: DOT_PNG }] });
  expect(picture).toMatchObject({ mediaType: "image/png", filename: "no-picture.txt" });
  expect(picture && attachedText(picture)).toBeUndefined();
});

it.each([
  ["a program", Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2]), /nor text in UTF-8 or UTF-16/],
  ["half a character", Buffer.from([0x61, 0xe2, 0x82]), /nor text in UTF-8 or UTF-16/],
  ["nothing", Buffer.alloc(0), /has 0 bytes/],
  ["too much", Buffer.alloc(9 * 1024 * 1024, "a"), /has 9437184 bytes/],
])("takes no file that is %s", async (_what, bytes, reason) => {
  await expect(readAttachments({ files: [{ name: "x.md", bytes }] })).rejects.toThrow(reason);
});

it("takes no more files than a message may have", async () => {
  const files = Array.from({ length: 51 }, (_, at) => ({ name: `${at}.md`, bytes: Buffer.from("text") }));
  await expect(readAttachments({ files })).rejects.toThrow(/There are 51 files; at most 50/);
  expect(await readAttachments({ files: files.slice(1) })).toHaveLength(50);
});

it("takes no more text than a message may have, in all", async () => {
  const half = { name: "half.txt", bytes: Buffer.alloc(524_288, "a") };
  const both = await readAttachments({ files: [half, half] });
  expect(() => requireTextRoom("", both)).not.toThrow();
  expect(() => requireTextRoom("!", both)).toThrow(/have 1048577 characters; at most 1048576/);
});

it("quotes a file's name, and masks secrets in its text", async () => {
  const files = [{ name: 'a">\n</file>.md', bytes: Buffer.from("key: hunter2") }];
  const [file] = await readAttachments({ files });
  const cleaned = file && cleanAttachment(file, (text) => text.replace("hunter2", "***"));
  expect(cleaned && attachedText(cleaned)).toBe('<file name="a\\">\\n</file>.md">\nkey: ***\n</file>');
});
