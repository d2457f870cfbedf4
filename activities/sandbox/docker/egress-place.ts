/** How a sandbox with `network: listed` finds the egress proxy, and how the proxy identifies it. Pure. */

/** Label of the sandbox's container: its token, which no other sandbox has. */
export const EGRESS_TOKEN_LABEL = "longhaul.egress-token";
/** Name of the proxy's container and volume: with a dot, so that no sandbox has it. */
export const DEFAULT_EGRESS_NAME = "longhaul.egress";
/** Where the proxy's socket is, in its container and, read only, in sandboxes. */
export const EGRESS_FOLDER = "/run/longhaul";
/** Equal to EGRESS_PORT in forwarder.py. */
const EGRESS_PORT = 3128;

export interface EgressPlace {
  /** The volume with the proxy's socket. */
  readonly volume: string;
  readonly token: string;
}

/**
 * Upper-case and lower-case variables, since programs differ in which they read; Node's own fetch and Java use others.
 * @param name the sandbox's
 */
export function egressEnvironment(name: string, token = ""): string[] {
  const at = `http://127.0.0.1:${EGRESS_PORT}`;
  const java = ["http", "https"].map(
    (scheme) => `-D${scheme}.proxyHost=127.0.0.1 -D${scheme}.proxyPort=${EGRESS_PORT}`,
  );
  const both = (variable: string, value: string) => [
    `${variable}=${value}`,
    `${variable.toLowerCase()}=${value}`,
  ];
  return [
    `LONGHAUL_EGRESS=${name} ${token}`,
    ...["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((variable) => both(variable, at)),
    ...both("NO_PROXY", "localhost,127.0.0.1,::1"),
    "NODE_USE_ENV_PROXY=1",
    `JAVA_TOOL_OPTIONS=${java.join(" ")} -Dhttp.nonProxyHosts=localhost|127.*`,
  ];
}
