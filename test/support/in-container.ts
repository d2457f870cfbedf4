/** What tests do in a container, and what they see of it. */
import type Dockerode from "dockerode";

/** What a command of a shell prints. */
export async function inContainer(container: Dockerode.Container, command: string): Promise<string> {
  const exec = await container.exec({ Cmd: ["bash", "-c", command], AttachStdout: true, Tty: true });
  let printed = "";
  for await (const piece of await exec.start({ Tty: true })) printed += String(piece);
  return printed.replaceAll("\r", "");
}

/** Makes an empty file, as the tools' user. */
export async function touch(container: Dockerode.Container, path: string): Promise<void> {
  const exec = await container.exec({ Cmd: ["touch", path], User: "1000" });
  await exec.start({});
}

/** Whether a process has the text in its command line; false where there is no container. */
export async function runsIn(container: Dockerode.Container, text: string): Promise<boolean> {
  const top = await container.top().catch(() => undefined);
  return top?.Processes.some((row: string[]) => row.join(" ").includes(text)) ?? false;
}

export const isThere = (container: Dockerode.Container): Promise<boolean> =>
  container.inspect().then(
    () => true,
    () => false,
  );
