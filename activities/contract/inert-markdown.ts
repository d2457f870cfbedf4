/** Makes foreign text safe where Temporal's Web UI renders Markdown. Pure. */
import { showHidden } from "./hidden-characters.ts";

/**
 * The same text with all Markdown and HTML disabled: links, images, code, headings, and formulas, which the Web UI
 * renders for text between two `$`. Hidden characters are shown as codes.
 */
export function inertMarkdown(text: string): string {
  return showHidden(text)
    .replace(/[\\`*_{}[\]()#+!|<>&~$]/g, (sign) => `\\${sign}`)
    .replace(/:\/\//g, ":\\//");
}
