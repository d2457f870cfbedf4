/** Patterns of files that name a project's packages, by ecosystem. Files named in a set-up's commands count too: agent/dependencies.py. */
export const DEPENDENCY_FILES: readonly string[] = (
  "package.json package-lock.json npm-shrinkwrap.json yarn.lock .yarnrc.yml pnpm-lock.yaml pnpm-workspace.yaml bun.lock* .npmrc " +
  "requirements*.txt constraints*.txt pyproject.toml setup.py setup.cfg Pipfile Pipfile.lock poetry.lock uv.lock .python-version " +
  "Cargo.toml Cargo.lock rust-toolchain* go.mod go.sum go.work Gemfile Gemfile.lock composer.json composer.lock " +
  "pom.xml *.gradle *.gradle.kts gradle.lockfile .tool-versions .nvmrc devcontainer.json"
).split(" ");

/** Whether a path of a repository names packages, or a set-up's command names it; in doubt it does. */
export function isDependencyFile(path: string, commands: readonly string[]): boolean {
  const name = path.slice(path.lastIndexOf("/") + 1);
  return (
    DEPENDENCY_FILES.some((pattern) => fits(pattern, name)) ||
    commands.some((command) => command.includes(path))
  );
}

/** A pattern has one star at most. */
function fits(pattern: string, name: string): boolean {
  const [start = "", end] = pattern.split("*");
  if (end === undefined) return name === pattern;
  return name.length >= start.length + end.length && name.startsWith(start) && name.endsWith(end);
}
