/**
 * A session's keys on this Docker host: what its sandbox gets instead of their values, what proves their hosts to it, and what the
 * proxy is told. Only this file and the proxy have values.
 */
import type Dockerode from "dockerode";
import { fatal } from "../../contract/failures.ts";
import { keyClients } from "../../config/key-clients.ts";
import { keyRule, valueProblem, type KeyDefinitions, type KeyRing } from "../../config/key-settings.ts";
import { cutChars } from "../../text/cut.ts";
import { certificatesSource, pythonArguments } from "../agent/sources.ts";
import { hasEgress, type SandboxSettings, type SandboxSpec } from "../sandbox-host.ts";
import { imageMissing, statusOf, unavailable } from "./docker-errors.ts";
import { GUARD_LABEL, INSTALLATION_LABEL } from "./profile.ts";
import { runOnce } from "./run-program.ts";

/** As certificates.py prints it. Times are in seconds since 1970. */
export interface Certificates {
  /** PEM of the authority that the sandbox trusts. Nobody has its key. */
  readonly authority: string;
  /** By host: PEM of its certificate and of that certificate's key. */
  readonly hosts: Readonly<Record<string, string>>;
  readonly made: number;
  readonly until: number;
}

export interface PreparedKeys {
  /** With the settings of programs that use the keys. */
  readonly spec: SandboxSpec;
  /** What the proxy is told with the session's rules. Values are read at each call. */
  readonly told: () => object;
  /** Hosts of its keys, which count as listed. */
  readonly hosts: readonly string[];
  /** Keys that the session names and this host does not have. */
  readonly lacking: readonly string[];
}

/** They are good for 30 days, and a run may last: made again when a sandbox is opened with older ones. */
const MAX_AGE_SECONDS = 25 * 86_400;
/** openssl is on the path of every image that has it. */
const SYSTEM_PATH = "PATH=/usr/local/bin:/usr/bin:/bin";

interface SessionKeysOptions {
  readonly docker: Dockerode;
  /** The operator's image, with python3 and openssl; never the session's. */
  readonly image: string;
  /** What the proxy has for a session. */
  readonly certificatesOf: (sessionId: string) => Promise<Certificates | undefined>;
  readonly ring: KeyRing;
}

export class SessionKeys {
  readonly #options: SessionKeysOptions;
  /** By session: of a proxy that is restarted, all sandboxes keep what they trust. */
  readonly #held = new Map<string, Certificates>();

  constructor(options: SessionKeysOptions) {
    this.#options = options;
  }

  /**
   * What the session's sandbox is opened with.
   * @throws KeyMissing (fatal) if a key has no value, or certificates cannot be made; ImageMissing (fatal); SandboxUnavailable
   */
  async prepare(spec: SandboxSpec): Promise<PreparedKeys> {
    const { definitions } = this.#options.ring;
    const named = hasEgress(spec) ? (spec.keys ?? []) : [];
    const lacking = named.filter((name) => !Object.hasOwn(definitions, name));
    const keys = Object.fromEntries(
      Object.entries(definitions).filter(([name]) => named.includes(name) && !lacking.includes(name)),
    );
    if (Object.keys(keys).length === 0) return { spec, told: () => ({}), hosts: [], lacking };
    this.#rules(keys);
    const certificates = await this.#certificates(spec, keys);
    const { settings = NO_SETTINGS } = spec;
    return {
      spec: { ...spec, settings: withClients(settings, keys, certificates.authority) },
      told: () => ({
        certificate: certificates,
        keys: hostsOf(this.#rules(keys)).map((host) => ({
          ...host,
          authorities: settings.certificates ?? "",
        })),
      }),
      hosts: Object.keys(certificates.hosts),
      lacking,
    };
  }

  forget(sessionId: string): void {
    this.#held.delete(sessionId);
  }

  /** @throws KeyMissing (fatal) */
  #rules(keys: KeyDefinitions): readonly KeyOrder[] {
    return Object.entries(keys).map(([name, key]) => {
      const value = this.#options.ring.valueOf(name) ?? "";
      const problem = valueProblem(name, value);
      if (problem !== undefined)
        throw fatal(
          "KeyMissing",
          `${problem}. Nothing was run, and the files are kept. Set it in the environment of this host's worker and start that again`,
        );
      const { host, port, header, textOf, uses } = keyRule(key);
      return { host, port, key: { name, value, header, text: textOf(value), uses } };
    });
  }

  /** Those that the session's sandbox trusts already, if they are for these hosts and not too old. */
  async #certificates(spec: SandboxSpec, keys: KeyDefinitions): Promise<Certificates> {
    const hosts = [...new Set(Object.values(keys).map((key) => keyRule(key).host))].sort();
    const isFit = ({ hosts: has, made }: Certificates) =>
      Object.keys(has).sort().join(" ") === hosts.join(" ") && Date.now() / 1_000 - made < MAX_AGE_SECONDS;
    // Another worker may have made them.
    const known = [await this.#options.certificatesOf(spec.sessionId), this.#held.get(spec.sessionId)];
    const trusted = known.find((certificates) => certificates !== undefined && isFit(certificates));
    const certificates = trusted ?? (await makeCertificates(this.#options, spec, hosts));
    this.#held.set(spec.sessionId, certificates);
    return certificates;
  }
}

interface KeyOrder {
  readonly host: string;
  readonly port: number;
  readonly key: object;
}

/** One entry for each host and port, with all its keys: the first that fits a request is used. */
function hostsOf(orders: readonly KeyOrder[]): { host: string; port: number; keys: object[] }[] {
  const byPlace = Map.groupBy(orders, ({ host, port }) => `${host}:${port}`);
  return [...byPlace.values()].flatMap((same) => {
    const [first] = same;
    return first === undefined
      ? []
      : [{ host: first.host, port: first.port, keys: same.map(({ key }) => key) }];
  });
}

const NO_SETTINGS: SandboxSettings = { env: {}, files: {}, registries: [] };

/** Files in the sandbox and the variables that name them; what the session itself sets stays. */
function withClients(settings: SandboxSettings, keys: KeyDefinitions, authority: string): SandboxSettings {
  const clients = keyClients(keys);
  return {
    ...settings,
    env: { ...settings.env, ...clients.env, ...settings.own },
    files: { ...settings.files, ...clients.files },
    certificates: `${settings.certificates ?? ""}${authority}`,
  };
}

/**
 * In a container of the operator's image, in whose memory the authority's key is and ends.
 * @throws KeyMissing (fatal) if the image has no openssl, ImageMissing (fatal), SandboxUnavailable (retryable)
 */
async function makeCertificates(
  { docker, image }: SessionKeysOptions,
  spec: SandboxSpec,
  hosts: readonly string[],
): Promise<Certificates> {
  const output = await runOnce(docker, {
    Image: image,
    User: "0:0",
    Entrypoint: pythonArguments("LONGHAUL_CERTIFICATES"),
    Env: [
      SYSTEM_PATH,
      `LONGHAUL_CERTIFICATES=${certificatesSource}`,
      `LONGHAUL_ORDER=${JSON.stringify({ hosts })}`,
    ],
    Labels: { [GUARD_LABEL]: spec.sessionId, [INSTALLATION_LABEL]: spec.installation ?? "" },
    HostConfig: { NetworkMode: "none", Tmpfs: { "/tmp": "rw,nosuid,nodev,noexec,mode=700,size=1m" } },
  }).catch((error: unknown) => {
    if (statusOf(error) === 404) throw imageMissing({ ...spec, image }, error);
    throw unavailable(error);
  });
  const made = parsed(output);
  if (made !== undefined) return made;
  const why = output.includes('"lacks"')
    ? `the image ${image} has no openssl`
    : `the program in the image ${image} said ${JSON.stringify(cutChars(output, 200))}`;
  throw fatal(
    "KeyMissing",
    `The certificates for sandbox.keys cannot be made: ${why}. Nothing was run, and the files are kept. ` +
      "Set LONGHAUL_GUARD_IMAGE to an image with python3 and openssl (npm start builds one), or start the task without keys",
  );
}

function parsed(output: string): Certificates | undefined {
  try {
    const made = JSON.parse(output) as Certificates | { readonly lacks: string };
    return "authority" in made ? made : undefined;
  } catch {
    return undefined;
  }
}
