/** How Temporal is reached: its standard variables and `temporal.toml` profiles, read by its own package. */
import type { ConnectionOptions } from "@temporalio/client";
import { loadClientConnectConfig } from "@temporalio/envconfig";
import type { NativeConnectionOptions } from "@temporalio/worker";
import { ProxyUnusable, temporalProxy, type TemporalProxy } from "../activities/process/proxies.ts";
import type { ListenAddress } from "./patience.ts";
import { proxyMissing } from "./service-missing.ts";

type ConnectConfig = ReturnType<typeof loadClientConnectConfig>;

export interface TemporalConnection {
  /** For a client. */
  readonly connection: ConnectConfig["connectionOptions"] & Pick<ConnectionOptions, "channelArgs">;
  /** The same server by the same way, for a worker, whose library reads no proxy from the environment. */
  readonly native: ConnectConfig["connectionOptions"] & Pick<NativeConnectionOptions, "proxy">;
  /** Where the server listens; undefined behind a proxy. */
  readonly listenAddress: ListenAddress | undefined;
  readonly namespace: string;
}

/**
 * @param address overrides the configuration: a server that we brought up ourselves
 * @throws ServiceMissing for a proxy that Temporal cannot be reached through
 */
export function temporalConnection(address?: string): TemporalConnection {
  const { connectionOptions, namespace } = loadClientConnectConfig();
  const target = address ?? connectionOptions.address ?? "127.0.0.1:7233";
  const { host, port } = hostAndPort(target);
  const proxy = proxyTo(host);
  const options = { ...connectionOptions, address: target };
  return {
    connection: { ...options, channelArgs: { "grpc.enable_http_proxy": proxy === undefined ? 0 : 1 } },
    native: { ...options, ...(proxy === undefined ? {} : { proxy: { type: "http-connect", ...proxy } }) },
    listenAddress: proxy === undefined ? { host, port: port ?? TEMPORAL_PORT } : undefined,
    namespace: namespace ?? "default",
  };
}

/** Of `host:port`, `[::1]:port` or a URL; the host without brackets. */
export function hostAndPort(address: string): { readonly host: string; readonly port: number | undefined } {
  const plain = address.replace(/^[a-z]+:\/\//i, "").replace(/\/.*$/, "");
  const [, bracketed, name, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(plain) ?? [];
  // More than one colon without brackets: an IPv6 address alone.
  return { host: bracketed ?? name ?? plain, port: port === undefined ? undefined : Number(port) };
}

/** Of an address without one. Source: Temporal's SDKs. */
const TEMPORAL_PORT = 7233;

function proxyTo(host: string): TemporalProxy | undefined {
  try {
    return temporalProxy(host);
  } catch (error) {
    if (error instanceof ProxyUnusable) throw proxyMissing(error);
    throw error;
  }
}
