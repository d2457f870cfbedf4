/** The page: one document, assembled from its parts, that runs nothing but its own script. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { HIDDEN_PATTERN } from "../../activities/text/clean.ts";

export interface Page {
  readonly html: string;
  readonly policy: string;
}

const part = (name: string) => readFileSync(new URL(`./page/${name}`, import.meta.url), "utf8");

export function readPage(): Page {
  const style = [part("page.css"), part("session.css")].join("\n");
  const files = ["show.js", "notes.js", "controls.js", "many.js", "page.js", "start.js"].map(part);
  const script = [`const HIDDEN = /${HIDDEN_PATTERN}/gu;`, ...files].join("\n");
  const html = part("page.html")
    // The hashes cover everything between the tags.
    .replace(/(?<=<style>)[^<]*/, () => style)
    .replace(/(?<=<script>)[^<]*/, () => script);
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
  return { html, policy };
}

const hashOf = (text: string) => `sha256-${createHash("sha256").update(text).digest("base64")}`;
