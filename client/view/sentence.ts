/** What an event's sentence consists of, and the short ways to make one. */
import type { EventData, EventType, SessionEvent } from "../../activities/store/event.ts";
import { harmlessLine } from "../console/format.ts";

/** What a sentence is to its reader. `quiet` is routine; `notice` changes the session; `people`: what a person said or did. */
export type Tone = "quiet" | "notice" | "people" | "good" | "warn" | "bad";

export interface Sentence {
  readonly tone: Tone;
  /** A sign before the text. */
  readonly mark?: string;
  /** One line. */
  readonly text: string;
  /** Figures that belong to it, which a view may show fainter. */
  readonly facts?: string;
  /** Lines below it, such as a command's output: a view shows as many as it has room for. */
  readonly detail?: string;
}

/** What earlier events of the session say. A view that keeps nothing leaves it out. */
export interface KnownPeople {
  /** Who started the session: only others are named. */
  readonly owner?: string;
  /** Who sent each message, by its id. */
  readonly senders?: ReadonlyMap<string, string | undefined>;
}

export type Describe<Type extends EventType> = (
  data: EventData[Type],
  event: SessionEvent,
  known: KnownPeople,
) => readonly Sentence[];

const PERSON_CHARS = 80;

export const quiet = (text: string): Sentence => ({ tone: "quiet", text });
export const notice = (text: string, mark?: string): Sentence => ({ tone: "notice", mark, text });
export const people = (text: string, mark: string): Sentence => ({ tone: "people", mark, text });
export const warn = (text: string, mark = "!"): Sentence => ({ tone: "warn", mark, text });

export const person = (name: string) => harmlessLine(name, PERSON_CHARS);
