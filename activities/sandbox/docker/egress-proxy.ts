/**
 * The egress proxy of this Docker host, for sandboxes with `network: listed`, and this worker's connection to it. Sandboxes reach
 * it over a socket in a volume, so they need no network at all.
 */
import type Dockerode from "dockerode";
import type { ContainerInspectInfo } from "dockerode";
import type { RefusedRequests, SandboxEgress } from "../sandbox.ts";
import type { SandboxSpec } from "../spec.ts";
import { SandboxLost } from "../sandbox-lost.ts";
import { type EgressContainer, removeUnusedProxy, runningProxy } from "./egress-container.ts";
import type { Firewall } from "./firewall.ts";
import { sandboxName } from "./profile.ts";
import type { Answer } from "./supervisor-stream.ts";
import { SupervisorLink } from "./supervisor-link.ts";

interface EgressProxyOptions extends EgressContainer {
  readonly docker: Dockerode;
  readonly firewall: Firewall;
}

interface OpenProxy {
  readonly found: ContainerInspectInfo;
  readonly link: SupervisorLink;
}

export class EgressProxy {
  readonly #options: EgressProxyOptions;
  #opening: Promise<OpenProxy> | undefined;

  constructor(options: EgressProxyOptions) {
    this.#options = options;
  }

  /**
   * Starts the proxy if it is not running.
   * @returns which addresses the session's requests may go to, and what could not be determined
   * @throws ImageMissing (fatal) if its image is not there, SandboxUnavailable (retryable)
   */
  async addresses(spec: SandboxSpec): ReturnType<Firewall["rules"]> {
    const { found } = await this.#open();
    return this.#options.firewall.rules(found, spec);
  }

  /** The proxy as seen by one session's sandbox. @param token identifies that sandbox to the proxy */
  of(spec: SandboxSpec, token: string): SandboxEgress {
    const session = sandboxName(spec.sessionId);
    return {
      allow: async (domains) => {
        // Sent each time: a restarted proxy has no rules.
        const { sets, registries } = await this.addresses(spec);
        await this.#request("set", { session, id: spec.sessionId, token, domains, ...sets, registries });
      },
      refused: async () => {
        const { denials } = await this.#request("denials", { session, everything: false });
        return denials as RefusedRequests[];
      },
    };
  }

  /** Drops the session's rules in the background, if this worker has used the proxy: a removed sandbox sends nothing. */
  forget(sessionId: string): void {
    this.#opening
      ?.then(({ link }) => link.request("forget", { session: sandboxName(sessionId) }))
      .catch(() => undefined);
  }

  /** Removes the proxy if no sandbox on this host uses it. @returns whether there was one to remove */
  removeUnused(): Promise<boolean> {
    return removeUnusedProxy(this.#options.docker, this.#options.name);
  }

  close(why: string): void {
    this.#opening?.then(
      ({ link }) => link.close(why),
      () => undefined,
    );
    this.#opening = undefined;
  }

  async #request(op: string, fields: object): Promise<Answer> {
    const opening = this.#open();
    try {
      return await (await opening).link.request(op, fields);
    } catch (error) {
      if (!(error instanceof SandboxLost)) throw error;
      if (this.#opening === opening) this.close("the egress proxy ended");
      return (await this.#open()).link.request(op, fields);
    }
  }

  #open(): Promise<OpenProxy> {
    if (this.#opening !== undefined) return this.#opening;
    const opening = this.#connect();
    this.#opening = opening;
    // A failure is not kept.
    opening.catch(() => {
      if (this.#opening === opening) this.#opening = undefined;
    });
    return opening;
  }

  async #connect(): Promise<OpenProxy> {
    const { docker } = this.#options;
    const found = await runningProxy(docker, this.#options);
    const link = new SupervisorLink(docker, found.Id, { probe: [], ready: Promise.resolve() });
    await link.connect();
    return { found, link };
  }
}
