/** The public package registries, the one file that names their hosts. */

/** Where packages come from by default, npm's first, and their files if those are elsewhere. */
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

/** Pip's own index. */
export const PIP_INDEX = "https://pypi.org/simple";
