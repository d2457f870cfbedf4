/** What a command of a shell prints in a container. */
import type Dockerode from "dockerode";

export async function inContainer(container: Dockerode.Container, command: string): Promise<string> {
  const exec = await container.exec({ Cmd: ["bash", "-c", command], AttachStdout: true, Tty: true });
  let printed = "";
  for await (const piece of await exec.start({ Tty: true })) printed += String(piece);
  return printed.replaceAll("\r", "");
}
