/** A page of lines out of a file of any size, without the file in memory. */
import { cutChars } from "../contract/cut-text.ts";

export interface LineRequest {
  /** The file's first bytes, already read. */
  readonly first: Uint8Array;
  readonly size: number;
  readonly readAt: (offset: number, maxBytes: number) => Promise<Uint8Array>;
  /** First line wanted, from 1. */
  readonly offset: number;
  readonly maxLines: number;
  readonly maxLineChars: number;
  /** Whole lines up to this many characters, numbers included; always at least one line. */
  readonly maxChars: number;
}

export interface LinePage {
  readonly lines: readonly string[];
  /** True where the file's end was reached: `linesSeen` is its number of lines. */
  readonly ended: boolean;
  readonly linesSeen: number;
  /** The last line was left unfinished because it is extremely long. */
  readonly longLine: boolean;
  readonly crlf: boolean;
}

const CHUNK_BYTES = 4 * 1_048_576;
/** Bytes gone through in search of the end of a long line. */
const MAX_LINE_BYTES = 4 * 1_048_576;

export async function readLines(request: LineRequest): Promise<LinePage> {
  const decoder = new TextDecoder();
  const lines: string[] = [];
  let lineNumber = 1;
  let line = "";
  let lineChars = 0;
  let lineBytesFrom = 0;
  let chars = 0;
  let crlf = false;
  let chunk = request.first;
  let at = 0;
  const wanted = (): boolean => lineNumber >= request.offset;
  const finishLine = (): boolean => {
    if (wanted()) {
      if (line.endsWith("\r")) {
        crlf = true;
        line = line.slice(0, -1);
        lineChars -= 1;
      }
      const text = shortened(line, lineChars, request.maxLineChars);
      chars += text.length + 8;
      if (lines.length > 0 && chars > request.maxChars) return false;
      lines.push(text);
    }
    lineNumber += 1;
    line = "";
    lineChars = 0;
    return lines.length < request.maxLines;
  };
  const page = (more: Partial<LinePage>): LinePage => ({
    lines,
    ended: false,
    linesSeen: lineNumber - 1,
    longLine: false,
    crlf,
    ...more,
  });

  for (;;) {
    const last = at + chunk.length >= request.size || chunk.length === 0;
    const text = decoder.decode(chunk, { stream: !last });
    let from = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", from)) {
      keep(text.slice(from, end));
      from = end + 1;
      lineBytesFrom = at;
      if (!finishLine()) {
        const nothingLeft = last && from >= text.length;
        return page({ ended: nothingLeft });
      }
    }
    keep(text.slice(from));
    at += chunk.length;
    if (last) {
      if (lineChars > 0) {
        const room = finishLine();
        if (!room && lineChars > 0) return page({});
      }
      return page({ ended: true });
    }
    if (wanted() && at - lineBytesFrom > MAX_LINE_BYTES) {
      finishLine();
      return page({ longLine: true });
    }
    chunk = await request.readAt(at, CHUNK_BYTES);
  }

  function keep(part: string): void {
    lineChars += part.length;
    if (wanted() && line.length <= request.maxLineChars) {
      line += cutChars(part, request.maxLineChars + 2 - line.length);
    }
  }
}

function shortened(line: string, lineChars: number, max: number): string {
  if (lineChars <= max) return line;
  return `${cutChars(line, max)}… [line cut: ${lineChars.toLocaleString("en-US")} characters]`;
}
