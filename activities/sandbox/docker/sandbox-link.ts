/** Connects to one start of a sandbox while its network rules are applied, and measures what it can reach. */
import type Dockerode from "dockerode";
import type { Sandbox } from "../sandbox.ts";
import type { SandboxSpec } from "../spec.ts";
import type { EgressProxy } from "./egress-proxy.ts";
import type { Firewall } from "./firewall.ts";
import { closedProbe, measuredListed, measuredReach } from "./firewall-rules.ts";
import { createSupervisorLink, type SupervisorLink } from "./supervisor-link.ts";

/** A link, and what the sandbox can reach once its network rules are in force. */
export interface SandboxLink {
  readonly link: SupervisorLink;
  readonly network: Promise<(reachableFromInside: readonly string[]) => Sandbox["network"]>;
}

export async function linkTo(
  docker: Dockerode,
  { firewall, proxy }: { readonly firewall: Firewall; readonly proxy: EgressProxy },
  found: Dockerode.ContainerInspectInfo,
  spec: SandboxSpec,
): Promise<SandboxLink> {
  const link = (probe: readonly string[], ready: Promise<unknown>) =>
    createSupervisorLink(docker, found.Id, { disk: spec.disk, settings: spec.settings, probe, ready });
  if (spec.network === "none") {
    const none = Promise.resolve(() => ({ reach: "none" }) as const);
    return { link: link([], none), network: none };
  }
  if (spec.network === "listed") {
    const probe = closedProbe();
    const network = proxy.addresses(spec).then(
      ({ troubles }) =>
        (fromInside: readonly string[]) =>
          measuredListed(probe, fromInside, troubles),
    );
    return { link: link(probe, Promise.resolve()), network };
  }
  const rules = await firewall.rules(found, spec);
  const applied = firewall.apply(found, spec, rules);
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
  };
}
