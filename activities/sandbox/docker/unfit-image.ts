/**
 * Whether an image can be a session's sandbox, before anything is paid or made for it: tried once for each image in a container without
 * a network or rights, in which only Python runs.
 */
import type Dockerode from "dockerode";
import { reasonOf } from "../../contract/errors.ts";
import { fatal } from "../../contract/failures.ts";
import { imageSource, pythonArguments, TOO_OLD } from "../agent/sources.ts";
import type { SandboxSpec } from "../sandbox-host.ts";
import { cannotStart, imageMissing } from "./docker-errors.ts";
import { EGRESS_FOLDER } from "./profile.ts";
import { runOnce } from "./run-program.ts";

/** Folders in which we mount, or in which the supervisor writes. */
const FOLDERS = ["/tmp", "/var", "/var/lib", "/var/lib/longhaul", EGRESS_FOLDER];
const SOURCE_VARIABLE = "LONGHAUL_IMAGE";
const NOT_RUN = /exec format error|executable file not found|no such file or directory/i;
/** Images whose verdict is remembered, by their ids: what an id names never changes. */
const MAX_KNOWN = 1_000;

export class ImageCheck {
  readonly #docker: Dockerode;
  /** The operator's own image, which runs on this host already. */
  readonly #trusted: string;
  readonly #fit = new Set<string>();

  constructor(docker: Dockerode, trusted: string) {
    this.#docker = docker;
    this.#trusted = trusted;
  }

  /**
   * Says nothing about an engine that does not answer: opening the sandbox does.
   * @throws SandboxRefused, ImageMissing (fatal)
   */
  async refuseUnfit(spec: SandboxSpec): Promise<void> {
    const name = spec.keptImage ?? spec.image;
    if (spec.container !== undefined || name === this.#trusted) return;
    const image = await this.#docker
      .getImage(name)
      .inspect()
      .then(
        ({ Id }) => Id,
        (error: unknown) => ((error as { statusCode?: unknown }).statusCode === 404 ? "missing" : undefined),
      );
    if (image === undefined || this.#fit.has(image)) return;
    if (image === "missing") throw imageMissing(spec);
    const output = await this.#probe(image);
    if (output === undefined) return;
    if (NOT_RUN.test(output) && !output.startsWith("{"))
      throw await cannotStart(this.#docker, spec, undefined);
    const tooOld = TOO_OLD.exec(output)?.[0];
    if (tooOld !== undefined) throw unfit(spec, `its ${tooOld}; nothing was asked or run. Use another image`);
    const trouble = troubleIn(output);
    if (trouble !== undefined)
      throw unfit(spec, `${trouble}, where a sandbox needs a folder; ${MAKE_IT_ONE}`);
    if (this.#fit.size >= MAX_KNOWN) this.#fit.clear();
    this.#fit.add(image);
  }

  /** What the program or the engine printed; undefined if the engine is away. */
  async #probe(image: string): Promise<string | undefined> {
    try {
      return await runOnce(this.#docker, {
        Image: image,
        User: "65534:65534",
        Entrypoint: pythonArguments(SOURCE_VARIABLE),
        Env: [`${SOURCE_VARIABLE}=${imageSource}`, `LONGHAUL_FOLDERS=${JSON.stringify(FOLDERS)}`],
        NetworkDisabled: true,
        HostConfig: { NetworkMode: "none" },
      });
    } catch (error) {
      const reason = reasonOf(error);
      return NOT_RUN.test(reason) && (error as { statusCode?: unknown }).statusCode !== undefined
        ? reason
        : undefined;
    }
  }
}

function troubleIn(output: string): string | undefined {
  const { link, files } = parseOutput(output);
  if (typeof link === "string") return `/workspace is a link there (to ${JSON.stringify(link)})`;
  return files?.[0] === undefined ? undefined : `${files[0]} is no folder there`;
}

function parseOutput(output: string): { readonly link?: unknown; readonly files?: readonly string[] } {
  try {
    return JSON.parse(output);
  } catch {
    return {};
  }
}

const MAKE_IT_ONE =
  "nothing was asked or run. In its Dockerfile, make it a folder (RUN rm -rf PATH && mkdir PATH), or use another image";

const unfit = ({ image }: SandboxSpec, trouble: string): Error =>
  fatal(
    "SandboxRefused",
    `the image ${image} cannot be a sandbox: ${trouble}: docs/sandbox.md lists what one needs`,
  );
