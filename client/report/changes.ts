/** The change file by file, each with its line counts and its patch. Pure. */
import { cutChars } from "../../activities/text/cut.ts";
import { plural } from "../console/format.ts";
import { patchFiles, type PatchFile } from "../workspace/workspace-diff.ts";
import { html, type Html } from "./html.ts";

/** Characters of the change shown in the page; `longhaul diff` shows all of it. */
const MAX_PATCH_CHARS = 400_000;

export function changesPart(patch: string): Html {
  if (patch === "") return html`<p class="faint">No change to a file was saved.</p>`;
  const shown = cutChars(patch, MAX_PATCH_CHARS);
  const files = patchFiles(shown);
  const sum = (pick: (file: PatchFile) => number | null) =>
    files.reduce((total, file) => total + (pick(file) ?? 0), 0);
  return html`<p>
      ${plural(files.length, "file")},
      ${lineCounts(
        sum(({ added }) => added),
        sum(({ removed }) => removed),
      )}${patch.length > shown.length ? ", cut here: longhaul diff shows all of it" : ""}
    </p>
    ${files.map(
      ({ path, added, removed, text }) =>
        html`<details class="file">
          <summary>
            <code>${path}</code>
            ${added === null || removed === null ? html`<span class="facts">binary</span>` : lineCounts(added, removed)}
          </summary>
          <pre tabindex="0">${text.split("\n").map(diffLine)}</pre>
        </details>`,
    )}`;
}

function lineCounts(added: number, removed: number): Html {
  return html`<span class="counts"
    ><span class="add" aria-label="${plural(added, "line")} added">+${added}</span>
    <span class="del" aria-label="${plural(removed, "line")} removed">−${removed}</span></span
  >`;
}

const LOOKS: Readonly<Record<string, string>> = { "+": "add", "-": "del", "@": "at" };

function diffLine(line: string): Html {
  const look = LOOKS[line.charAt(0)];
  return look === undefined ? html`${line}` : html`<span class="${look}">${line}</span>`;
}
