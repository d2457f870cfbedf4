/** What a fetched page is as text: HTML as Markdown, other text as it is; and why it has none. */
import { cutChars } from "../text/cut.ts";
import { readText } from "../text/encoding.ts";
import { convertHtml } from "./convert-html.ts";
import type { FetchedPage } from "./fetch-page.ts";

export type PageText =
  | {
      readonly ok: true;
      readonly text: string;
      readonly type: string;
      readonly title?: string;
      readonly remarks: readonly string[];
    }
  | { readonly ok: false; readonly text: string };

interface ReadOptions {
  /** HTML as it is. */
  readonly raw: boolean;
  readonly signal: AbortSignal;
}

/** Bytes in which a page names its charset. Source: HTML's standard, "prescan a byte stream". */
const PRESCAN_BYTES = 1_024;
const HTML_TYPE = /^(text\/html|application\/xhtml\+xml)$/;
const TEXT_TYPE =
  /^(text\/|application\/(.*\+)?(json|xml|yaml|toml|javascript|x-javascript|x-ndjson|x-sh|sql)$|image\/svg\+xml$)/;
/** What a server says when it does not know. */
const UNKNOWN_TYPE = /^(|application\/octet-stream|binary\/octet-stream)$/;

/** @throws the signal's reason if it is aborted */
export async function pageText(
  { url, contentType, bytes }: FetchedPage,
  options: ReadOptions,
): Promise<PageText> {
  const [type = "", ...parameters] = contentType.split(";").map((part) => part.trim());
  const mediaType = type.toLowerCase();
  if (mediaType === "application/pdf" || bytes.subarray(0, 5).toString("latin1") === "%PDF-")
    return {
      ok: false,
      text: `${url.host} answered with a PDF (${bytes.length} bytes). Download it with bash (curl -O), then look at its pages with view_image and page=1, 2 and so on.`,
    };
  const charset = parameters.map((part) => /^charset=["']?([^"']+)/i.exec(part)?.[1]).find(Boolean);
  const isText = HTML_TYPE.test(mediaType) || TEXT_TYPE.test(mediaType);
  if (!isText && !UNKNOWN_TYPE.test(mediaType)) return binary(url, mediaType, bytes);
  const decoded = decode(bytes, charset ?? namedCharset(bytes));
  if (decoded === undefined) return binary(url, mediaType, bytes);
  const isHtml =
    HTML_TYPE.test(mediaType) || (!isText && /^\s{0,200}<(!doctype html|html)[\s>]/i.test(decoded.text));
  const page = {
    ok: true as const,
    text: decoded.text,
    type: mediaType || "no type",
    remarks: decoded.remarks,
  };
  if (!isHtml || options.raw) return page;
  const converted = await convertHtml({ html: decoded.text, address: url.href }, options.signal);
  return converted.ok
    ? { ...page, ...converted, remarks: [...decoded.remarks, ...converted.remarks] }
    : { ok: false, text: `The page of ${url.host} ${converted.why}. raw: true shows its HTML.` };
}

function binary(url: URL, type: string, bytes: Uint8Array): PageText {
  const kind = type === "" || UNKNOWN_TYPE.test(type) ? "no text" : cutChars(type, 100);
  return {
    ok: false,
    text: `${url.host} answered with ${kind} (${bytes.length} bytes), which is not shown. Download it with bash (curl -O) and look at the file.`,
  };
}

const namedCharset = (bytes: Buffer): string | undefined =>
  /<(?:meta\b[^>]*\bcharset|\?xml\b[^>]*\bencoding)\s*=\s*["']?([\w:-]+)/i.exec(
    bytes.subarray(0, PRESCAN_BYTES).toString("latin1"),
  )?.[1];

interface Decoded {
  readonly text: string;
  readonly remarks: readonly string[];
}

/** By the charset that the page names, if it fits; else by what the bytes are. @returns undefined if they are no text */
function decode(bytes: Buffer, charset: string | undefined): Decoded | undefined {
  const named = charset === undefined ? undefined : decodeAs(bytes, charset);
  if (named !== undefined && !named.includes("\0")) return { text: named, remarks: [] };
  const decoded = readText(bytes);
  if (decoded.kind === "binary") return undefined;
  const was = decoded.kind === "text" ? decoded.form.encoding : decoded.name;
  const remark =
    charset === undefined
      ? `it names no charset, and was read as ${was ?? "text of an unknown encoding"}`
      : `it names the charset ${cutChars(charset, 40)}, which does not fit, and was read as ${was ?? "text of an unknown encoding"}`;
  const isUsual = charset === undefined && decoded.kind === "text" && was === "utf-8";
  return { text: decoded.text, remarks: isUsual ? [] : [remark] };
}

/** @returns undefined for an unknown charset, and for bytes that are none of its characters */
function decodeAs(bytes: Uint8Array, charset: string): string | undefined {
  try {
    return new TextDecoder(charset, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
