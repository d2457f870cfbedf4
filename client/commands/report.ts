/** `longhaul report ID`: one self-contained HTML file. */
import { writeFile } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { unwritable } from "../console/errors.ts";
import type { Output } from "../console/output.ts";
import { reportPage } from "../report/report-page.ts";
import { gather } from "../report/report-sources.ts";
import { SESSION, withSession } from "../sessions/with-session.ts";

export function reportCommand(command: Command, output: Output) {
  command
    .argument("<id>", SESSION)
    .argument("[file]", "output file, default ID.html in this folder; - is standard output");
  return (reference: string, file: string | undefined) =>
    withSession(reference, async (services, { id }) => {
      const page = reportPage(await gather(services, id));
      if (file === "-") return output.result(page);
      const path = resolve(file ?? `${id}.html`);
      await writeFile(path, page).catch((error: unknown) => {
        throw unwritable(path, error);
      });
      output.result(`${path}\n`);
    });
}
