/** What a test shows: its `tags` are the labels of docs/requirements.md. */
import { readFileSync } from "node:fs";

export interface Label {
  /** As texts cite it: `R44`, `case 12`, `requirement 4.2`. */
  readonly label: string;
  readonly meaning: string;
}

const PAGE = new URL("../../docs/requirements.md", import.meta.url);

export function explainedLabels(): Label[] {
  const rows = readFileSync(PAGE, "utf8").matchAll(
    /^\| ((?:requirement|invariant|case|[A-Z]\d)[^|]*) \|\s*(.*?)\s*\|$/gm,
  );
  return [...rows].map(([, label = "", meaning = ""]) => ({ label, meaning }));
}

/** A tag holds no space: `case-12`. */
export function tagOfLabel(label: string): string {
  return label.replace(" ", "-");
}
