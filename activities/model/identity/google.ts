/** Access tokens of Google Cloud: application default credentials, as Google's own library finds them. */
import { optionalPackage, TokenTrouble, type TokenSource } from "./token-source.ts";

const PACKAGE = "google-auth-library";
const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
/** For a token whose end the library does not say: Google's are good for an hour. */
const USUAL_LIFE_MS = 3_000_000;

interface GoogleLibrary {
  readonly GoogleAuth: new (options: object) => {
    getClient(): Promise<{
      getAccessToken(): Promise<{ readonly token?: string | null | undefined }>;
      readonly credentials?: { readonly expiry_date?: number | null | undefined };
    }>;
    getCredentials(): Promise<{ readonly client_email?: string | undefined }>;
  };
}

export interface GoogleOptions {
  readonly now: () => number;
  readonly load: (name: string) => Promise<unknown>;
}

/** Made anew each time, so that renewed credentials on disk are used. */
const authOf = async ({ load }: GoogleOptions) =>
  new (await optionalPackage<GoogleLibrary>(PACKAGE, load)).GoogleAuth({ scopes: [SCOPE] });

export function googleTokens(options: GoogleOptions): TokenSource {
  return async () => {
    const client = await (await authOf(options)).getClient();
    const { token } = await client.getAccessToken();
    if (!token) throw new TokenTrouble("Google's library returned none");
    return { token, expiresAt: client.credentials?.expiry_date ?? options.now() + USUAL_LIFE_MS };
  };
}

/** The service account, if it is one. */
export async function googleAccount(options: GoogleOptions): Promise<string | undefined> {
  return (await (await authOf(options)).getCredentials()).client_email;
}
