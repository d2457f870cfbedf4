// The collection as one JSON file. A write goes to a new file beside it, which is then renamed: after a crash or a
// full disk the old content is there whole, never half of the new one.

import { open, readFile, rename, rm } from "node:fs/promises";
import { emptyCollection } from "./cards.js";
import { isDay } from "./days.js";

/** What is wrong with a file, in words for the person who must fix it. */
export class StoreError extends Error {
  name = "StoreError";
}

/** Reads a collection; a file that is not there is an empty one. @throws StoreError when it is damaged or newer */
export async function load(path) {
  let text;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error.code === "ENOENT") return emptyCollection();
    throw new StoreError(`${path} cannot be read: ${error.message}`, { cause: error });
  }
  let data;
  try {
    data = JSON.parse(text);
  } catch (error) {
    throw new StoreError(`${path} is damaged (${error.message}). It was left as it is.`, { cause: error });
  }
  return checked(data, path);
}

/** Writes a collection whole. Two writers at once: the last one wins, and the file is never mixed. */
export async function save(path, collection) {
  const temporary = `${path}.${process.pid}.${Math.random().toString(36).slice(2)}.tmp`;
  try {
    const file = await open(temporary, "wx");
    try {
      await file.writeFile(`${JSON.stringify(collection, null, 2)}\n`);
      // Without this a power cut can leave the new name with no content.
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw new StoreError(`${path} cannot be written: ${error.message}`, { cause: error });
  }
}

function checked(data, path) {
  if (data?.version > 1) {
    throw new StoreError(`${path} was written by a newer version (${data.version}). Please update.`);
  }
  const lists = ["decks", "cards", "log"];
  if (data?.version !== 1 || lists.some((list) => !Array.isArray(data[list]))) {
    throw new StoreError(`${path} is not a collection of flashcards. It was left as it is.`);
  }
  const broken = data.cards.find((card) => !Number.isInteger(card.id) || !isDay(card.schedule?.due));
  if (broken !== undefined) {
    throw new StoreError(
      `${path}: the card ${JSON.stringify(broken.front ?? broken)} has no valid schedule.`,
    );
  }
  return data;
}
