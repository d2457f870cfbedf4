/**
 * Which ids people and programs may choose for a session. Ids that we derive ourselves are kept out of their reach: what carries
 * such a name was made by us. The row policy of clients' roles and a trigger in Postgres say the same.
 */

/** What a workflow, a container and a folder can be called. A derived id may also have a colon, which no chosen one has. */
const CHOSEN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
/** `calm-otter-4k7x.s2c0` and `….s2c0e3`: the session of a delegate, see `toChildId`. */
const OF_DELEGATE = String.raw`[.]s[0-9]+c[0-9]+(e[0-9]+)?$`;
/** How the engine's names write the id of a session that a schedule started: its colons replaced, a hash behind. */
const OF_SCHEDULE = "-[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}-[0-9]{2}-[0-9]{2}Z-[0-9a-f]{12}$";

/** Patterns that JavaScript and Postgres read alike; the derived ones hold in upper and lower case. */
export const idPatterns = {
  chosen: CHOSEN,
  ofDelegate: OF_DELEGATE,
  derived: `(${OF_DELEGATE})|(${OF_SCHEDULE})`,
};

const chosen = new RegExp(idPatterns.chosen);
const derived = new RegExp(idPatterns.derived, "i");
const ofDelegate = new RegExp(idPatterns.ofDelegate, "i");

/** Why an id cannot be chosen; undefined if it can. */
export function unlikeChosenId(id: string): "alphabet" | "derived" | undefined {
  if (!chosen.test(id)) return "alphabet";
  return derived.test(id) ? "derived" : undefined;
}

/**
 * The id of a sandbox that no session has, such as doctor's: made, measured and removed. With a colon, which no chosen id has.
 * @param unique tells it from those of the same program elsewhere
 */
export const probeId = (program: string, unique: string): string => `${program}:${unique}`;

/** Whether only a delegate's session can have this id. */
export const isDelegateId = (id: string): boolean => ofDelegate.test(id);

/** Whether the id can be that of a start of the schedule: Temporal appends the time. */
export const isStartOf = (schedule: string, id: string): boolean =>
  id.startsWith(`${schedule}-`) && !isDelegateId(id);
