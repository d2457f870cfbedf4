/**
 * `npm run sbom [-- FOLDER [IMAGE]]`: bills of materials as CycloneDX documents: of the packages that a worker and a client run
 * with, and of the sandbox's image, if the Docker engine has it. Default: `dist/sbom`, and the default image.
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { imageNamed } from "../activities/config/sandbox-settings.ts";
import { connectDocker } from "../activities/sandbox/docker/connect-docker.ts";
import { imageBill, imagePackages } from "../client/setup/sandbox-image/image-packages.ts";

const project = fileURLToPath(new URL("..", import.meta.url));
const [folder = join(project, "dist", "sbom"), imageArgument] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const write = (name: string, text: string) => {
  writeFileSync(join(folder, name), text);
  process.stderr.write(`${join(folder, name)}\n`);
};

const npm = spawnSync("npm", ["sbom", "--sbom-format", "cyclonedx", "--omit", "dev"], {
  cwd: project,
  encoding: "utf8",
  maxBuffer: 64 * 1024 * 1024,
});
if (npm.status !== 0) {
  process.stderr.write(npm.stderr || "npm sbom failed; run npm ci first.\n");
  process.exit(1);
}
write("longhaul.cdx.json", npm.stdout);

const docker = connectDocker();
const name = imageNamed(imageArgument);
const found = await docker
  .getImage(name)
  .inspect()
  .catch(() => undefined);
if (found === undefined) {
  process.stderr.write(`The engine has no image ${name}: its bill was not written.\n`);
  process.exitCode = imageArgument === undefined ? 0 : 1;
} else {
  const bill = imageBill({ name, id: found.Id }, await imagePackages(docker, name));
  write("sandbox-image.cdx.json", `${JSON.stringify(bill, undefined, 2)}\n`);
}
