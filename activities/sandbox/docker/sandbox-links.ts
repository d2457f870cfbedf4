/** This host's links to its sandboxes. Connecting applies a sandbox's network rules and measures what it can reach. */
import type Dockerode from "dockerode";
import type { ContainerInspectInfo } from "dockerode";
import type { SandboxSpec } from "../sandbox-host.ts";
import { type Sandbox, SandboxLost } from "../sandbox.ts";
import type { EgressProxy } from "./egress-proxy.ts";
import { closedProbe, measuredListed, measuredReach } from "./firewall-rules.ts";
import type { Firewall } from "./firewall.ts";
import { type Handshake, SupervisorLink } from "./supervisor-link.ts";

/** A link, and what the sandbox can reach once its network rules are in force. */
interface SandboxLink {
  /** The settings that the sandbox got over it. */
  readonly settings: string;
  readonly link: SupervisorLink;
  readonly network: Promise<(reachableFromInside: readonly string[]) => Sandbox["network"]>;
}

/** A link whose supervisor has answered. */
interface ConnectedLink extends Handshake {
  readonly link: SupervisorLink;
  readonly network: Sandbox["network"];
}

export class SandboxLinks {
  readonly #docker: Dockerode;
  readonly #firewall: Firewall;
  readonly #proxy: EgressProxy;
  /** By container id, so that a new sandbox of the same name gets its own link. */
  readonly #links = new Map<string, SandboxLink>();

  constructor(docker: Dockerode, firewall: Firewall, proxy: EgressProxy) {
    this.#docker = docker;
    this.#firewall = firewall;
    this.#proxy = proxy;
  }

  /**
   * Connects to a running sandbox, over its link if it has one.
   * @param wasStarted whether it has just been started again: then it has lost its network rules and gets a new link
   * @throws SandboxLost if it ended meanwhile, SandboxUnavailable (retryable)
   */
  async connect(info: ContainerInspectInfo, spec: SandboxSpec, wasStarted: boolean): Promise<ConnectedLink> {
    const existing = wasStarted ? undefined : this.#links.get(info.Id);
    // Of keys, the certificates may have been made again.
    if (existing !== undefined && existing.settings !== settingsText(spec))
      this.drop(info.Id, "the sandbox gets other settings");
    else if (existing !== undefined) {
      try {
        return await this.#connectOver(existing, info.Id);
      } catch (error) {
        // The link may lead to the sandbox as it was before a restart.
        if (!(error instanceof SandboxLost)) throw error;
      }
    }
    return this.#connectOver(await this.#newLink(info, spec), info.Id);
  }

  /** Closes a container's link, if it has one. */
  drop(containerId: string, why: string): void {
    this.#links.get(containerId)?.link.close(why);
    this.#links.delete(containerId);
  }

  dropAll(why: string): void {
    for (const containerId of this.#links.keys()) this.drop(containerId, why);
  }

  async #connectOver(sandboxLink: SandboxLink, containerId: string): Promise<ConnectedLink> {
    this.#links.set(containerId, sandboxLink);
    const { link } = sandboxLink;
    try {
      const [handshake, network] = await Promise.all([link.connect(), sandboxLink.network]);
      return { ...handshake, link, network: network(handshake.reachable) };
    } catch (error) {
      this.drop(containerId, "the sandbox could not be reached");
      throw error;
    }
  }

  async #newLink(info: ContainerInspectInfo, spec: SandboxSpec): Promise<SandboxLink> {
    const link = (probe: readonly string[], ready: Promise<unknown>) =>
      new SupervisorLink(this.#docker, info.Id, {
        disk: spec.disk,
        settings: spec.settings,
        probe,
        ready,
      });
    const settings = settingsText(spec);
    if (spec.network === "none") {
      const none = Promise.resolve(() => ({ reach: "none" }) as const);
      return { link: link([], none), network: none, settings };
    }
    if (spec.network === "listed") {
      const probe = closedProbe();
      const network = this.#proxy.addresses(spec).then(
        ({ troubles }) =>
          (fromInside: readonly string[]) =>
            measuredListed(probe, fromInside, troubles),
      );
      return { link: link(probe, Promise.resolve()), network, settings };
    }
    const rules = await this.#firewall.rules(info, spec);
    const applied = this.#firewall.apply(info, spec, rules);
    // Probed from inside too: a runtime may have a network of its own, to which the namespace's rules do not apply.
    const network = applied.then(
      ({ troubles, reachable }) =>
        (fromInside: readonly string[]) =>
          measuredReach(rules, [...new Set([...reachable, ...fromInside])], [...rules.troubles, ...troubles]),
    );
    return {
      link: link(
        rules.probe,
        applied.catch(() => undefined),
      ),
      network,
      settings,
    };
  }
}

/** Nothing without keys: other settings stay while a session runs. */
const settingsText = ({ keys, settings }: SandboxSpec): string =>
  keys === undefined ? "" : JSON.stringify(settings ?? null);
