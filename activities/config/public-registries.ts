/** The public package registries; the only file that names their hosts. */

/** Default sources of packages, npm's first, and the hosts of their files if different. */
export const PUBLIC_REGISTRIES: readonly string[] = [
  "registry.npmjs.org",
  "registry.yarnpkg.com",
  "pypi.org",
  "files.pythonhosted.org",
  "index.crates.io",
  "static.crates.io",
  "proxy.golang.org",
  "sum.golang.org",
  "repo.maven.apache.org",
  "repo1.maven.org",
];

/** Pip's default index. */
export const PIP_INDEX = "https://pypi.org/simple";
