/** The files in a message. Pure. */
import type { FilePart, Message, ToolResultPart } from "./message.ts";

export function filesOf(message: Message): FilePart[] {
  if (message.role === "user") return message.content.filter((part) => part.type === "file");
  return message.role === "tool" ? [...(message.content[0].files ?? [])] : [];
}

/** A text file as the model reads it. The name is quoted, so that it cannot end the tag. */
export const fileText = (name: string, text: string) =>
  `<file name=${JSON.stringify(name)}>\n${text.replace(/\n$/, "")}\n</file>`;

/** @param shown the replacement of each file: another file, or text; files without an entry stay */
export function withFiles(message: Message, shown: ReadonlyMap<FilePart, FilePart | string>): Message {
  if (message.role === "user") {
    const content = message.content.map((part) => {
      const as = part.type === "file" ? shown.get(part) : undefined;
      if (as === undefined) return part;
      return typeof as === "string" ? ({ type: "text", text: as } as const) : as;
    });
    return { role: "user", content };
  }
  return message.role === "tool"
    ? { role: "tool", content: [resultWith(message.content[0], shown)] }
    : message;
}

function resultWith(result: ToolResultPart, shown: ReadonlyMap<FilePart, FilePart | string>): ToolResultPart {
  if (!result.files) return result;
  const { files, ...rest } = result;
  const kept: FilePart[] = [];
  let text = rest.text;
  for (const file of files) {
    const as = shown.get(file) ?? file;
    if (typeof as === "string") text += `\n${as}`;
    else kept.push(as);
  }
  return { ...rest, text, ...(kept.length > 0 ? { files: kept } : {}) };
}
