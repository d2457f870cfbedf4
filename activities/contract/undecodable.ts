import { cutChars } from "../text/cut.ts";

/** Stands for an external argument that could not be decoded: a foreign encoding, broken JSON, no metadata. */
export class Undecodable {
  /** The encoding that the sender named: printable ASCII, at most 60 characters; empty if there is none. */
  readonly encoding: string;

  constructor(encoding: string) {
    this.encoding = cutChars(encoding.replace(/[^ -~]/g, "?"), 60);
  }

  /** Description for people who look at the run. */
  get description(): string {
    return this.encoding === "" ? "no encoding is named" : `its encoding is ${this.encoding}`;
  }
}
