/** A client whose requests reach Temporal, and whose answers to some of them are lost on the way back. */
import { Client, type Connection } from "@temporalio/client";
import type { Services } from "../../client/connect/connection.ts";

/** The code with which a proxy or a restart ends a request. */
const UNAVAILABLE = 14;

const lost = () =>
  Object.assign(new Error("14 UNAVAILABLE: connection lost"), {
    code: UNAVAILABLE,
    details: "connection lost",
    metadata: undefined,
  });

type Method = (...args: unknown[]) => Promise<unknown>;

/**
 * @param methods of the workflow service whose answers are lost, after the server has done what they ask
 * @param later methods whose answers are lost as well from then on
 */
export function losingAnswers(
  services: Services,
  methods: readonly string[],
  later: readonly string[] = [],
): Services {
  let hasLost = false;
  const lossy = (service: object) =>
    new Proxy(service, {
      get(target, name, receiver) {
        const method: unknown = Reflect.get(target, name, receiver);
        const known = [...methods, ...later].includes(String(name));
        if (typeof method !== "function" || !known) return method;
        return async (...args: unknown[]) => {
          const answer = await (method as Method).apply(target, [...args]);
          if (!methods.includes(String(name)) && !hasLost) return answer;
          hasLost = true;
          throw lost();
        };
      },
    });
  const clients = new WeakMap<Client, Client>();
  const client = async () => {
    const real = await services.temporal.client();
    const known = clients.get(real);
    if (known !== undefined) return known;
    const { connection, options } = real;
    const service = lossy(connection.workflowService);
    const proxied = new Proxy(connection, {
      get: (target, name, receiver) =>
        name === "workflowService" ? service : Reflect.get(target, name, receiver),
    });
    const losing = new Client({ ...options, connection: proxied as Connection });
    clients.set(real, losing);
    return losing;
  };
  return { ...services, temporal: { ...services.temporal, client } };
}
