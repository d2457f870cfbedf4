/** What all pictures need: a database, a worker with a scripted model, a browser, and a folder that is removed afterwards. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, Connection } from "@temporalio/client";
import { chromium, type Page } from "playwright-core";
import { connectDocker } from "../../activities/sandbox/docker/connect-docker.ts";
import { findSessionRow } from "../../activities/store/reading.ts";
import { browserPath } from "../../test/support/browser-path.ts";
import { createClosers } from "../../test/support/closers.ts";
import { eventually } from "../../test/support/eventually.ts";
import { startOwnPostgres } from "../../test/support/own-postgres.ts";
import { clientArgs } from "../../test/support/program.ts";
import { removeBox } from "../../test/support/remove-box.ts";
import { startScriptedModel } from "../../test/support/scripted-model.ts";
import { startWorkerProcess } from "../../test/support/worker-process.ts";

const {
  TEMPORAL_ADDRESS = "127.0.0.1:7233",
  TEMPORAL_UI = "http://127.0.0.1:8233",
  SANDBOX_IMAGE,
  PATH = "",
} = process.env;
const IMAGES = fileURLToPath(new URL("../../docs/images/", import.meta.url));

/** One story that pictures are taken of. */
export interface Story {
  /** The id of its session. */
  readonly session: string;
  readonly model: Parameters<typeof startScriptedModel>[0];
  take(stand: Stand): Promise<void>;
}

export type Stand = Awaited<ReturnType<typeof startStand>>;

async function startServices({ session, model: script }: Story, more: Readonly<Record<string, string>>) {
  const home = mkdtempSync(join(tmpdir(), "longhaul-pictures-"));
  const closers = createClosers(async () => rmSync(home, { recursive: true, force: true }));
  const postgres = await startOwnPostgres();
  closers.add(() => postgres.close());
  const model = await startScriptedModel(script, { apiKey: "sk-pictures" });
  closers.add(() => model.close());
  const environment: Readonly<Record<string, string>> = {
    PATH,
    HOME: home,
    DATABASE_URL: postgres.url,
    TEMPORAL_ADDRESS,
    LONGHAUL_TASK_QUEUE: `pictures-${process.pid}`,
    LONGHAUL_NO_SETUP: "1",
    LONGHAUL_LOG_LEVEL: "warn",
    OPENAI_BASE_URL: model.baseUrl,
    OPENAI_API_KEY: "sk-pictures",
    LONGHAUL_MODEL: "gpt-4o",
    ...(SANDBOX_IMAGE === undefined ? {} : { SANDBOX_IMAGE }),
    ...more,
  };
  const worker = await startWorkerProcess(environment);
  closers.add(() => worker.terminate());
  const connection = await Connection.connect({ address: TEMPORAL_ADDRESS });
  const { workflow } = new Client({ connection });
  const docker = connectDocker();
  const end = async () => {
    for (const id of [session, `follow:${session}`])
      await workflow
        .getHandle(id)
        .terminate("its pictures are taken")
        .catch(() => undefined);
    await removeBox(docker, session);
  };
  closers.add(() => connection.close(), end);
  // An earlier attempt may have left a session.
  await end();
  return { postgres, environment, closers, home };
}

/** @param more variables of worker and clients, in addition to what they need */
export async function startStand(story: Story, more: Readonly<Record<string, string>>) {
  const { session } = story;
  const { postgres, environment, closers, home } = await startServices(story, more);
  const browser = await chromium.launch({ executablePath: browserPath ?? "", args: ["--no-sandbox"] });
  closers.add(() => browser.close());

  async function open(url: string, width: number, height: number): Promise<Page> {
    const page = await browser.newPage({ viewport: { width, height } });
    await page.goto(url);
    return page;
  }
  const longhaul = (...args: string[]) =>
    spawn(process.execPath, clientArgs(args), {
      cwd: home,
      env: environment,
      stdio: ["ignore", "pipe", "pipe"],
    });
  return {
    home,
    open,
    store: postgres.store,
    close: () => closers.close(),
    /** Waits until the session has a status. */
    isSession: (status: string) =>
      eventually(
        `${session} is ${status}`,
        async () => (await findSessionRow(postgres.store.db, session))?.status === status,
        120_000,
      ),
    /** A workflow in Temporal's Web UI. */
    uiOf: (id: string) => open(`${TEMPORAL_UI}/namespaces/default/workflows/${id}`, 1100, 720),
    /** Starts the server of Longhaul's page. @returns the page's address */
    startPage: (): Promise<string> => {
      const server = longhaul("serve", "--port", "0");
      closers.add(async () => void server.kill("SIGTERM"));
      let printed = "";
      server.stdout.setEncoding("utf8").on("data", (piece: string) => (printed += piece));
      return eventually("the page", () => /^http.*$/m.exec(printed)?.[0], 60_000);
    },
    longhaul: (...args: string[]) => outputOf(longhaul(...args)),
    /** @returns the folder, for `--workspace` */
    writeProject: (name: string, files: Readonly<Record<string, string>>) =>
      writeFiles(join(home, name), files),
    /** @returns the file, for `--config` */
    writeSettings(yaml: string): string {
      const settings = join(home, "settings.yaml");
      writeFileSync(settings, yaml);
      return settings;
    },
  };
}

/** @returns what a command prints, both streams in order */
async function outputOf(command: ReturnType<typeof spawn>): Promise<string> {
  let text = "";
  for (const stream of [command.stdout, command.stderr])
    stream?.setEncoding("utf8").on("data", (piece: string) => (text += piece));
  await once(command, "close");
  return text.trim();
}

function writeFiles(folder: string, files: Readonly<Record<string, string>>): string {
  mkdirSync(folder);
  for (const [path, content] of Object.entries(files)) writeFileSync(join(folder, path), content);
  return folder;
}

export function imagePath(name: string): string {
  return join(IMAGES, `${name}.png`);
}

/** Waits until a text is in the current details, which Temporal's Web UI shows in frames of their own. */
export async function showDetails(ui: Page, text: string): Promise<void> {
  await ui.getByText("User Metadata").first().click();
  await ui.setViewportSize({ width: 1100, height: 1020 });
  await eventually(`"${text}" is shown`, async () => {
    const shown = ui.frames().map((frame) => frame.getByText(text).count());
    return (await Promise.all(shown)).some((count) => count > 0);
  });
}
