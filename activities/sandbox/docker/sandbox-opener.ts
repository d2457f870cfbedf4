/** Opens sandboxes on one Docker host: brings the container up, connects to it, and refuses it if it is not isolated as required. */
import type { ContainerInspectInfo } from "dockerode";
import { retryable } from "../../contract/failures.ts";
import type { Sandbox } from "../sandbox.ts";
import { SandboxLost } from "../sandbox-lost.ts";
import { abortable, shareWork, type SharedWork } from "../shared-work.ts";
import type { SandboxSpec } from "../spec.ts";
import { bringUp, type ContainerHost, NOT_FOUND_EXIT_CODE, type RunningContainer } from "./bring-up.ts";
import { volumeIdentity } from "./docker-containers.ts";
import { cannotStart, unguarded, unless, withoutGuard } from "./docker-errors.ts";
import { createDockerSandbox } from "./docker-sandbox.ts";
import { EGRESS_TOKEN_LABEL } from "./egress-place.ts";
import type { EgressProxy } from "./egress-proxy.ts";
import type { Firewall } from "./firewall.ts";
import { isolationGaps } from "./isolation-checks.ts";
import { SHORT_ID } from "./profile.ts";
import type { SandboxLinks } from "./sandbox-links.ts";

interface OpenerOptions extends Omit<ContainerHost, "onRemoved"> {
  /** Name of the host. */
  readonly name: string;
  /** The image that runs the firewall. */
  readonly guardImage: string;
  readonly firewall: Firewall;
  readonly proxy: EgressProxy;
  readonly links: SandboxLinks;
}

interface Opening {
  readonly sessionId: string;
  readonly work: SharedWork<Sandbox>;
}

export class SandboxOpener {
  readonly #options: OpenerOptions;
  readonly #host: ContainerHost;
  /** Openings in progress, by the whole spec as text. */
  readonly #openings = new Map<string, Opening>();

  constructor(options: OpenerOptions) {
    this.#options = options;
    this.#host = { ...options, onRemoved: (id, why) => options.links.drop(id, why) };
  }

  /** Concurrent callers with the same spec share one opening, which is aborted when all of them have been. */
  async open(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> {
    signal?.throwIfAborted();
    return await this.#share(spec).join(signal);
  }

  /** Resolves when no opening of this session is in progress: an aborted one may still have requests at the engine. */
  async settled(sessionId: string): Promise<void> {
    const own = [...this.#openings.values()].filter((opening) => opening.sessionId === sessionId);
    await Promise.all(own.map(({ work }) => work.over));
  }

  #share(spec: SandboxSpec): SharedWork<Sandbox> {
    const key = JSON.stringify(spec);
    const shared = this.#openings.get(key)?.work;
    if (shared?.canJoin === true) return shared;
    const work = shareWork((signal) => this.#openNow(spec, signal));
    const opening = { sessionId: spec.sessionId, work };
    this.#openings.set(key, opening);
    void work.over.then(() => {
      if (this.#openings.get(key) === opening) this.#openings.delete(key);
    });
    return work;
  }

  async #openNow(spec: SandboxSpec, signal: AbortSignal): Promise<Sandbox> {
    const { docker, name, firewall, surroundingsOf, say } = this.#options;
    if (spec.network !== "none") firewall.prefetch(spec);
    const running = await bringUp(this.#host, spec, signal);
    const { found } = running;
    const container = found.Name.replace(/^\//, "");
    const volume = (await volumeIdentity(docker, spec.sessionId)) ?? "";
    const connected = await abortable(this.#connect(running, spec), signal);
    const { link, network, empty, boot, isolation } = connected;
    const { image } = await surroundingsOf(found);
    const identity = { host: name, volume, container: found.Id.slice(0, SHORT_ID), boot, image };
    const gaps = [
      ...(network.reach === "everything" ? [network.why ?? ""] : []),
      ...(isolation === undefined ? [] : isolationGaps(isolation, spec.runtime)),
    ];
    for (const gap of gaps) say(`sandbox: ${container} is not isolated as required: ${gap}`);
    if (gaps.length > 0 && spec.guard !== "best-effort") await this.#refuse(running, gaps);
    const facts = { container, identity, empty, network, gaps, ...this.#waysOut(found, spec) };
    return createDockerSandbox(facts, link);
  }

  async #connect({ found, started }: RunningContainer, spec: SandboxSpec) {
    try {
      return await this.#options.links.connect(found, spec, started);
    } catch (error) {
      if (!(error instanceof SandboxLost)) throw error;
      return this.#failOpening(found.Id, spec, error);
    }
  }

  /** A sandbox that ends while it is opened is not lost yet: the next attempt opens it again, if that can help. */
  async #failOpening(containerId: string, spec: SandboxSpec, lost: SandboxLost): Promise<never> {
    const found = await unless([404], () => this.#options.docker.getContainer(containerId).inspect());
    if (found?.State.ExitCode === NOT_FOUND_EXIT_CODE)
      throw await cannotStart(this.#options.docker, spec, lost);
    const message = `the sandbox ended while it was opened: ${lost.message}`;
    throw retryable("SandboxUnavailable", message, { cause: lost });
  }

  /** Leaves the sandbox as it was found. @throws SandboxUnguarded or ImageMissing (fatal) */
  async #refuse({ found, started }: RunningContainer, gaps: readonly string[]): Promise<never> {
    const { docker, guardImage, links } = this.#options;
    links.drop(found.Id, "the sandbox is not isolated as required");
    if (started)
      await unless([404, 409], () => docker.getContainer(found.Id).remove({ force: true, v: true }));
    const image = await unless([404], () => docker.getImage(guardImage).inspect());
    throw image === undefined ? withoutGuard(guardImage) : unguarded(gaps, guardImage);
  }

  /** What the port offers for a sandbox that can reach something. */
  #waysOut(found: ContainerInspectInfo, spec: SandboxSpec): Pick<Sandbox, "egress" | "refused"> {
    const { firewall, proxy } = this.#options;
    if (spec.network === "none") return {};
    if (spec.network === "listed")
      return { egress: proxy.of(spec, found.Config.Labels[EGRESS_TOKEN_LABEL] ?? "") };
    return { refused: (withinMs) => firewall.refused(found, spec, withinMs) };
  }
}
