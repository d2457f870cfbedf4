/** Text of others in what Temporal's Web UI draws as Markdown. Pure. */

/**
 * The same text with nothing that Markdown or HTML acts on: no link, image, code, heading, and no formula, which the Web UI
 * makes of what stands between two `$`.
 */
export function inertMarkdown(text: string): string {
  return text.replace(/[\\`*_{}[\]()#+!|<>&~$]/g, (sign) => `\\${sign}`).replace(/:\/\//g, ":\\//");
}
