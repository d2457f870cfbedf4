import { PUBLIC_REGISTRIES } from "../../activities/config/public-registries.ts";

/** Whether npm's registry, as configured on this machine, answers. */
export async function registriesAnswer(): Promise<boolean> {
  return fetch(process.env["NPM_CONFIG_REGISTRY"] ?? `https://${PUBLIC_REGISTRIES[0]}/`, {
    signal: AbortSignal.timeout(5_000),
  }).then(
    ({ ok }) => ok,
    () => false,
  );
}
