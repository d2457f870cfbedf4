import { cutChars } from "./cut-text.ts";

/** Stands for an argument from outside the project that could not be decoded: a foreign encoding, broken JSON, no metadata. */
export class Undecodable {
  /** What the sender named as the encoding: printable ASCII, at most 60 characters; empty if there is none. */
  readonly encoding: string;

  constructor(encoding: string) {
    this.encoding = cutChars(encoding.replace(/[^ -~]/g, "?"), 60);
  }

  /** For the people who look at the run. */
  get description(): string {
    return this.encoding === "" ? "no encoding is named" : `its encoding is ${this.encoding}`;
  }
}
