/** The packages in a sandbox's image, for its bill of materials. */
import type Dockerode from "dockerode";
import { runOnce } from "../../../activities/sandbox/docker/run-program.ts";

/** A package, identified by its package URL: `pkg:deb/debian/bash@5.2.37-2?arch=amd64`. */
export interface ImagePackage {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
}

/**
 * One line each: the distribution, its packages, npm's packages below /usr/local and in corepack's cache, and Python's.
 * Node itself is listed separately, because an image may have it without a package.
 */
const LIST = `. /etc/os-release; echo "os $ID"
dpkg-query -W -f 'deb \${Package} \${Version} \${Architecture}\\n'
node -e '
const { globSync, readFileSync } = require("node:fs");
console.log("node", process.versions.node);
for (const file of globSync(["/usr/local/lib/node_modules/**/package.json", "/home/agent/.cache/node/corepack/v*/*/*/package.json"])) {
  if (/\\/(test|tests|fixtures)\\//.test(file)) continue;
  try {
    const { name, version } = JSON.parse(readFileSync(file, "utf8"));
    if (name && version) console.log("npm", name, version);
  } catch {}
}'
python3 -m pip list --format freeze --disable-pip-version-check | sed -n 's/^\\([^=]*\\)==\\(.*\\)/pypi \\1 \\2/p'`;

/** Lists the packages in a container of the image, without a network. @throws Error if the image cannot be listed */
export async function imagePackages(docker: Dockerode, image: string): Promise<ImagePackage[]> {
  const output = await runOnce(docker, {
    Image: image,
    // Only this user can read the home.
    User: "1000",
    Entrypoint: ["/bin/bash", "-c", LIST],
    Env: ["HOME=/home/agent"],
    HostConfig: { NetworkMode: "none", Memory: 512 * 2 ** 20, PidsLimit: 64 },
  });
  return parsePackages(output);
}

/** @param listed as the container prints it */
export function parsePackages(listed: string): ImagePackage[] {
  const lines = listed.split("\n").map((line) => line.split(" "));
  const os = lines.find(([kind]) => kind === "os")?.[1] ?? "debian";
  const packages = lines.flatMap(([kind, name = "", version = "", arch]): ImagePackage[] => {
    const at = `${encodeURIComponent(name).replaceAll("%2F", "/")}@${encodeURIComponent(version)}`;
    switch (kind) {
      case "deb":
        return [{ name, version, purl: `pkg:deb/${os}/${at}?arch=${arch ?? "all"}` }];
      case "npm":
      case "pypi":
        return [{ name, version, purl: `pkg:${kind}/${at}` }];
      case "node":
        return [{ name: "node", version: name, purl: `pkg:generic/node@${name}` }];
      case undefined:
      default:
        return [];
    }
  });
  if (packages.length === 0) throw new Error("The image lists no packages: it is not a sandbox image.");
  return [...new Map(packages.map((entry) => [entry.purl, entry])).values()].toSorted((one, other) =>
    one.purl < other.purl ? -1 : 1,
  );
}

/** A CycloneDX document of the packages, like the one that `npm sbom` writes. */
export function imageBill(
  image: { readonly name: string; readonly id: string },
  packages: readonly ImagePackage[],
) {
  return {
    $schema: "http://cyclonedx.org/schema/bom-1.5.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: {
      component: { type: "container", "bom-ref": image.id, name: image.name, version: image.id },
    },
    components: packages.map((entry) => ({ type: "library", "bom-ref": entry.purl, ...entry })),
  };
}
