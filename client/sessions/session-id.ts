/** Short ids that a person can read out, type and tell apart. */
import { randomInt } from "node:crypto";
import { cutChars } from "../../activities/text/cut.ts";
import { unlikeChosenId } from "../../activities/contract/session-ids.ts";
import { usageError } from "../console/errors.ts";

const ADJECTIVES =
  "amber bold brave brisk calm clear clever cool crisp dapper deep eager early even fair fine firm fleet fond frank fresh gentle glad golden grand green happy hardy honest humble jolly keen kind late level light lively loyal lucky mellow merry mild neat noble patient plain proud quick quiet ready rosy sharp silver sleek smart snug solid steady still sunny swift tidy warm";
const NOUNS =
  "acorn anchor anvil aspen badger barge beacon birch bridge brook canyon cedar cliff comet coral crane delta dune eagle ember falcon fern finch fjord forge fox garnet glacier grove harbor hawk heron ibis island juniper kestrel lantern larch lark ledge lynx maple marsh meadow otter owl pebble pine plover quarry raven reef ridge river robin sable sparrow spruce stork summit thistle tundra walnut willow";
// Without vowels there are no accidental words, without look-alikes (0 o, 1 l) no misreadings.
const LETTERS = "bcdfghjkmnpqrstvwxz23456789";

/** A new id such as `calm-otter-4k7x`: 2 billion of them, and a collision is refused by the database. */
export function createSessionId(pick: (below: number) => number = randomInt): string {
  const word = (list: string) => {
    const choices = list.split(" ");
    return choices[pick(choices.length)] ?? "x";
  };
  const tail = Array.from({ length: 4 }, () => LETTERS.charAt(pick(LETTERS.length))).join("");
  return `${word(ADJECTIVES)}-${word(NOUNS)}-${tail}`;
}

/**
 * An id that a person chose. It names a workflow, a container and a folder, so it has their common alphabet.
 * @throws ClientError (usage)
 */
export function parseSessionId(id: string): string {
  const unlike = unlikeChosenId(id);
  if (unlike === undefined) return id;
  throw usageError(
    `${JSON.stringify(cutChars(id, 80))} cannot be a session id.`,
    unlike === "alphabet"
      ? "An id begins with a letter or digit and has at most 64 letters, digits, dots, dashes and underscores."
      : "Longhaul gives ids that end so itself: to the sessions of delegates (.s2c0) and schedules. Choose another end.",
  );
}
