/** Entra's tokens for Azure OpenAI: managed identity, workload identity, environment, Azure's command line. */
import { optionalPackage, TokenTrouble, type TokenSource } from "./token-source.ts";

const PACKAGE = "@azure/identity";
/** Source: learn.microsoft.com/azure/foundry/openai/api-version-lifecycle. */
const SCOPE = "https://cognitiveservices.azure.com/.default";

interface AzureLibrary {
  readonly DefaultAzureCredential: new () => {
    getToken(
      scope: string,
      options: object,
    ): Promise<{ readonly token: string; readonly expiresOnTimestamp: number } | null>;
  };
}

/** The credential is made anew each time, so that a renewed sign-on is used. */
export function entraTokens(load: (name: string) => Promise<unknown>, scope: string = SCOPE): TokenSource {
  return async (abortSignal) => {
    const { DefaultAzureCredential } = await optionalPackage<AzureLibrary>(PACKAGE, load);
    const given = await new DefaultAzureCredential().getToken(scope, { abortSignal });
    if (given === null) throw new TokenTrouble("Entra returned none");
    return { token: given.token, expiresAt: given.expiresOnTimestamp };
  };
}
