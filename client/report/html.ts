/** Builds HTML from untrusted parts: texts from a model, a command or a file are shown but never run. */

import { showHidden } from "../../activities/text/clean.ts";

/** Safe markup. */
export class Html {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

type Value = string | number | Html | readonly Html[];

const ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/** Escaped text: without markup, and without control characters; hidden ones are shown as codes. */
export function escapeHtml(text: string): string {
  return (
    showHidden(text.toWellFormed())
      .replace(/[&<>"']/g, (sign) => ENTITIES[sign] ?? "")
      // oxlint-disable-next-line no-control-regex -- control characters are what this is about
      .replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "")
  );
}

/** html`<p>${anything}</p>`: values are escaped, unless they are markup. */
export function html(pieces: TemplateStringsArray, ...values: Value[]): Html {
  let text = pieces[0] ?? "";
  values.forEach((value, index) => {
    text += markupOf(value) + (pieces[index + 1] ?? "");
  });
  return new Html(text);
}

function markupOf(value: Value): string {
  if (value instanceof Html) return value.text;
  if (typeof value === "string") return escapeHtml(value);
  if (typeof value === "number") return String(value);
  return value.map((part) => part.text).join("\n");
}
