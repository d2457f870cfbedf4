/** Makes foreign text safe where Temporal's Web UI renders Markdown. Pure. */

/**
 * The same text with all Markdown and HTML disabled: links, images, code, headings, and formulas, which the Web UI
 * renders for text between two `$`.
 */
export function inertMarkdown(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+!|<>&~$]/g, (sign) => `\\${sign}`).replace(/:\/\//g, ":\\//");
}
