import { mkdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { readAttachments } from "../../../client/sessions/images.ts";
import { emptyFolder } from "../../support/empty-folder.ts";

const folder = emptyFolder(afterAll);
const at = (name: string) => join(folder, name);

it("reads no device and waits for no pipe that is named as an image", async () => {
  symlinkSync("/dev/null", at("device.png"));
  await expect(readAttachments([at("device.png")])).rejects.toThrow(/device\.png is not a regular file/);
});

it("reads no file that is too large", async () => {
  writeFileSync(at("large.png"), "");
  truncateSync(at("large.png"), 2 ** 40);
  await expect(readAttachments([at("large.png")])).rejects.toThrow(/has 1099511627776 bytes/);
});

it.each([
  ["nothing.png", "", /has 0 bytes/],
  ["text.png", "%PDF", /is not a PNG/],
  ["notes.txt", "", /is not one of/],
])("says what is wrong with %s", async (name, content, reason) => {
  writeFileSync(at(name), content);
  await expect(readAttachments([at(name)])).rejects.toThrow(reason);
});

it("says which is a folder, or missing", async () => {
  mkdirSync(at("folder.png"));
  await expect(readAttachments([at("folder.png")])).rejects.toThrow(/is a folder/);
  await expect(readAttachments([at("gone.png")])).rejects.toThrow(/does not exist/);
});
