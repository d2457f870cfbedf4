import type Dockerode from "dockerode";

/** The host's address on Docker's default bridge, which sandboxes and the egress proxy may not reach unless it is allowed. */
export async function gatewayOf(docker: Dockerode): Promise<string> {
  const { IPAM } = (await docker.getNetwork("bridge").inspect()) as {
    IPAM: { Config: { Gateway?: string; Subnet: string }[] };
  };
  return IPAM.Config[0]?.Gateway ?? IPAM.Config[0]?.Subnet.replace(/\.0\/\d+$/, ".1") ?? "";
}
