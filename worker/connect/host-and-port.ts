/** `host:port` and `[::1]:port` as Temporal's addresses have them, and a URL's host. Pure. */

export interface HostAndPort {
  /** Without brackets. */
  readonly host: string;
  readonly port: number | undefined;
}

export function hostAndPort(address: string): HostAndPort {
  const plain = address.replace(/^[a-z]+:\/\//i, "").replace(/\/.*$/, "");
  const [, bracketed, name, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(plain) ?? [];
  // More than one colon without brackets: an IPv6 address alone.
  return { host: bracketed ?? name ?? plain, port: port === undefined ? undefined : Number(port) };
}
