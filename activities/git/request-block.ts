/** The part of a pull request's text that a session writes: between two marks, which forges do not show. Pure. */
import { createHash } from "node:crypto";

const END = "<!-- /longhaul -->";

/** Forges may change line ends, and blanks around a text. */
const digestOf = (text: string): string =>
  createHash("sha256").update(text.replaceAll("\r\n", "\n").trim()).digest("hex").slice(0, 16);

export function newBlock(session: string, text: string): string {
  // The text is the model's: it must not end the block.
  const safe = text.replaceAll(/<!--(?=\s*\/?longhaul)/gi, "&lt;!--").trim();
  return `<!-- longhaul ${session} ${digestOf(safe)} -->\n${safe}\n${END}`;
}

/** The session's block in a text. @returns undefined if there is none, or a person has changed it */
export function blockIn(text: string, session: string): string | undefined {
  for (const [block, of, digest, inner = ""] of text.matchAll(
    /<!-- longhaul (\S+) ([0-9a-f]{16}) -->\r?\n([^]*?)\r?\n<!-- \/longhaul -->/g,
  ))
    if (of === session && digestOf(inner) === digest) return block;
  return undefined;
}

/** The text with a new block in place of the session's own; unchanged if it has none. */
export function withBlock(text: string, session: string, written: string): string {
  const block = blockIn(text, session);
  return block === undefined ? text : text.replace(block, () => newBlock(session, written));
}
