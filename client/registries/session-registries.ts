/** Settings that a session's sandbox inherits from the person's machine: package registries and certificate authorities. */
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { resolve } from "node:path";
import { readBoundedText } from "../console/read-bounded-text.ts";
import type { RunConfig } from "../../activities/config/agent-config.ts";
import { setupOf } from "../../activities/config/sandbox-settings.ts";
import { usageError, unreadable } from "../console/errors.ts";
import { onlyCertificates, withoutCredentials, registriesOfMachine } from "./machine-registries.ts";
import type { Environment } from "../../activities/config/providers.ts";
import { present } from "../console/format.ts";

type Sandbox = RunConfig["sandbox"];
/** More than a company needs. A whole public bundle (some 200 KB) is too large: it would be read with every step. */
const MAX_CERTIFICATES_BYTES = 64 * 1024;
const SECRET_NAME = /(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)$/i;

/**
 * Adds this machine's registries and certificates to the settings. They are stored in the session's row, so workers can
 * run anywhere.
 * @throws ClientError (usage) if `caCerts` cannot be read or has no certificate
 */
export function withMachine(
  sandbox: Sandbox,
  environment: Environment,
  cwd: string,
): { readonly sandbox: Sandbox; readonly notes: readonly string[] } {
  const setup = setupOf(sandbox) === undefined ? {} : { setup: personOf(environment) };
  if (sandbox.network === "none")
    return { sandbox: { ...sandbox, inherited: setup }, notes: present(openSecrets(sandbox)) };
  const inherits = sandbox.registries === "inherit";
  const machine = inherits ? registriesOfMachine(environment) : undefined;
  const masked = typeof sandbox.registries === "object" ? withoutCredentials(sandbox.registries) : undefined;
  const certificates =
    sandbox.caCerts === undefined ? machine?.certificates : certificatesOf(resolve(cwd, sandbox.caCerts));
  const fits = certificates === undefined || certificates.length <= MAX_CERTIFICATES_BYTES;
  return {
    sandbox: {
      ...sandbox,
      ...(masked === undefined ? {} : { registries: masked.registries as Sandbox["registries"] }),
      inherited: {
        registries:
          machine === undefined ? undefined : (machine.registries as Exclude<Sandbox["registries"], string>),
        certificates: certificates === undefined || !fits ? undefined : certificates,
        cache: sandbox.cache ? personOf(environment) : undefined,
        ...setup,
      },
    },
    notes: present(
      ...(machine?.notes ?? []),
      ...(masked?.notes ?? []),
      !fits && TOO_LARGE,
      openSecrets(sandbox),
    ),
  };
}

/** Stable for one person on one machine, and reveals neither. */
const personOf = ({ HOME = "", USER = "" }: Environment): string =>
  createHash("sha256").update([hostname(), USER, HOME].join("\0")).digest("hex").slice(0, 16);

/**
 * The settings of a session on one project: a folder or a repository's address. The set-up's cache belongs to that project
 * alone, because the project's code took part in creating it.
 */
export function forProject(config: RunConfig, project: string): RunConfig {
  const { inherited } = config.sandbox;
  if (inherited?.setup === undefined) return config;
  const setup = createHash("sha256").update([inherited.setup, project].join("\0")).digest("hex").slice(0, 16);
  return { ...config, sandbox: { ...config.sandbox, inherited: { ...inherited, setup } } };
}

const TOO_LARGE =
  `This machine's own certificate authorities take more than ${MAX_CERTIFICATES_BYTES / 1024} KB, so the sandbox gets none of them. ` +
  "Put those that it needs into a file, and name it in sandbox.caCerts.";

function certificatesOf(path: string): string {
  let text: string;
  try {
    text = readBoundedText(path, { pipes: true });
  } catch (error) {
    throw unreadable(`sandbox.caCerts: ${path}`, error);
  }
  const certificates = onlyCertificates(text);
  if (certificates === undefined) throw usageError(`sandbox.caCerts: ${path} has no certificate in PEM.`);
  if (certificates.length > MAX_CERTIFICATES_BYTES)
    throw usageError(
      `sandbox.caCerts: ${path} has more than ${MAX_CERTIFICATES_BYTES / 1024} KB of certificates.`,
    );
  return certificates;
}

/** A warning about variables that look like secrets, because the model, the database and every command see them. */
function openSecrets({ env, services = {} }: Sandbox): string | undefined {
  const ofServices = Object.entries(services).map(
    ([name, service]) => [`sandbox.services.${name}.env`, service.env] as const,
  );
  const warnings = [["sandbox.env", env] as const, ...ofServices].flatMap(([setting, variables]) => {
    const names = Object.keys(variables).filter((name) => SECRET_NAME.test(name));
    return names.length === 0
      ? []
      : [
          `${setting}: ${names.join(", ")} can be read by the model and is stored as it is. Put no real secret there.`,
        ];
  });
  return warnings.length === 0 ? undefined : warnings.join("\n");
}
