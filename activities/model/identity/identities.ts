/** The providers that this worker reaches in its operator's way: their addresses, and the tokens for them. */
import type { ModelTarget } from "../../config/model-target.ts";
import type { Auth, OperatorProvider } from "../../config/operator-policy.ts";
import { apiOfPreset } from "../../config/presets.ts";
import { describedProvider, type Environment } from "../../config/providers.ts";
import { describeIdentity, bedrockTokens, googleTokens, entraTokens } from "./clouds.ts";
import { commandTokens, KeptToken, type TokenSource } from "./token-source.ts";

export interface Identity {
  /** `providers.bedrock (aws-bedrock)`, for messages. */
  readonly name: string;
  readonly fix: string;
  /** @param failed the token that the server refused @throws ModelError */
  readonly token: (signal: AbortSignal, failed?: string) => Promise<string>;
  /** Whose token it is, without it. @throws ModelError */
  readonly who: (signal: AbortSignal) => Promise<string>;
  readonly mask: (text: string) => string;
  /** Wall clock. */
  readonly now: () => number;
}

export interface IdentityOptions {
  readonly providers: Readonly<Record<string, OperatorProvider>>;
  /** The worker's whole environment: commands get little of it, and Amazon's variables are read here. */
  readonly environment: Environment;
  readonly now?: () => number;
  /** Imports an optional package. */
  readonly load?: (name: string) => Promise<unknown>;
}

/** What every program needs to run. */
const BASE = [
  "PATH",
  "HOME",
  "USER",
  "LANG",
  "LC_ALL",
  "TZ",
  "TMPDIR",
  "SSL_CERT_FILE",
  "NODE_EXTRA_CA_CERTS",
];

const FIXES: Readonly<Record<Auth["kind"], string>> = {
  "aws-bedrock":
    "Sign in again where the worker runs (aws sso login), or renew its AWS credentials, and check that they may call bedrock:CallWithBearerToken.",
  google:
    "Sign in again where the worker runs (gcloud auth application-default login), or check its service account.",
  azure:
    "Sign in again where the worker runs (az login), or check its managed identity and its role Cognitive Services OpenAI User.",
  command: "Run the command by hand as the worker's user, and see what it prints.",
};

export class Identities {
  readonly #options: Required<IdentityOptions>;
  readonly #known = new Map<string, Identity>();
  #issued: readonly string[] = [];
  #mask: (text: string) => string = (text) => text;

  constructor({ now = Date.now, load = (name) => import(name), ...options }: IdentityOptions) {
    this.#options = { ...options, now, load };
  }

  /** Every token that was ever used, for the sanitizer. A new list after each change. */
  readonly issued = (): readonly string[] => this.#issued;

  /** Removes secrets from the errors' texts from now on. */
  maskWith(mask: (text: string) => string): void {
    this.#mask = mask;
  }

  /** Names of the providers that have an identity. */
  get names(): string[] {
    return Object.entries(this.#options.providers).flatMap(([name, { auth }]) =>
      auth === undefined ? [] : [name],
    );
  }

  /** The target with the operator's provider in place of the session's, if there is one of that name. */
  targetOf<Target extends ModelTarget>(target: Target): Target {
    const { name } = target.provider;
    const own = this.#ownOf(name);
    if (own === undefined) return target;
    const { auth: _, ...configured } = own;
    const { provider, api } = describedProvider(name, configured);
    const isFixed = own.api !== undefined || (own.preset !== undefined && apiOfPreset(own.preset).isOnlyApi);
    return { ...target, provider, api: isFixed === true ? api : target.api };
  }

  /** Who this worker is at a provider; undefined: it uses a key, or none. */
  of(name: string): Identity | undefined {
    const own = this.#ownOf(name);
    if (own?.auth === undefined) return undefined;
    const known = this.#known.get(name) ?? this.#create(name, own, own.auth);
    this.#known.set(name, known);
    return known;
  }

  #ownOf(name: string): OperatorProvider | undefined {
    const { providers } = this.#options;
    return Object.hasOwn(providers, name) ? providers[name] : undefined;
  }

  #create(provider: string, own: OperatorProvider, auth: Auth): Identity {
    const { now } = this.#options;
    const mask = (text: string) => this.#mask(text);
    const name = `providers.${provider} (${auth.kind})`;
    const fix = FIXES[auth.kind];
    const source = this.#sourceOf(own, auth);
    const onToken = (token: string) => {
      if (!this.#issued.includes(token)) this.#issued = [...this.#issued, token];
    };
    const keptToken = new KeptToken({ source, name, fix, onToken, mask, now });
    const token: Identity["token"] = (signal, failed) => keptToken.get(signal, failed);
    const who: Identity["who"] = async (signal) =>
      describeIdentity({ auth, region: own.region, token: await token(signal), ...this.#options }, signal);
    return { name, fix, token, who, mask, now };
  }

  #sourceOf({ region = "" }: OperatorProvider, auth: Auth): TokenSource {
    const { environment, now, load } = this.#options;
    switch (auth.kind) {
      case "aws-bedrock":
        return bedrockTokens({ region, profile: auth.profile, environment, now, load });
      case "google":
        return googleTokens({ now, load });
      case "azure":
        return entraTokens(load, auth.scope);
      case "command": {
        const passed = [...BASE, ...auth.pass].flatMap((name) =>
          environment[name] === undefined ? [] : [[name, environment[name]] as const],
        );
        const variables = Object.fromEntries(passed);
        return commandTokens({ command: auth.command, lifeMs: auth.for, environment: variables, now });
      }
    }
  }
}
