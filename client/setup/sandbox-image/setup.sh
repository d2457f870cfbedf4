#!/bin/sh
# Turns a Debian system into our sandbox image. The Dockerfile runs this as root inside the system, and so does set-up after
# debootstrap. Node, its headers and npm's folder are in /usr/local by then.
set -eu
COREPACK=0.36.0
# The pnpm and yarn of projects that name no version; a project's `packageManager` makes corepack fetch another one. Each has
# its SHA-512, because a mirror may lack the signatures that corepack requires otherwise. pnpm 12 fetches another program when
# it starts, so it does not work offline.
PNPM=11.28.11+sha512.740184d10f81f5d5b165be88560ee7ba62406c4134896abc27a580109eec2f47c1e41d91251c944c2cababcb1c22461799ebb72de2ec625af2030b0e36c735a3
YARN=1.22.22+sha512.a6b2f7906b721bba3d67d4aff083df04dad64c399707841b7acf00f6b133b7ac24255f2652fa22ae3534329dc6180534e98d17432037ff6fd140556e2bb3137e
UV=0.13.9
PATH=/usr/local/bin:$PATH

if [ -n "${CERTIFICATES:-}" ]; then
  { cat /etc/ssl/certs/ca-certificates.crt; printf '\n%s\n' "$CERTIFICATES"; } > /tmp/certificates.pem
  export NODE_EXTRA_CA_CERTS=/tmp/certificates.pem PIP_CERT=/tmp/certificates.pem
fi

# The supervisor runs tools as 1000:1000, so the numeric ids matter. A new named volume inherits the owner.
useradd --create-home --user-group --uid 1000 --shell /bin/bash agent
install -d -o agent -g agent -m 0755 /workspace

# With these, `git init && git commit` works at once.
git config --system user.name "Longhaul agent"
git config --system user.email "agent@localhost"
git config --system init.defaultBranch main
git lfs install --system --skip-repo
ln -s fdfind /usr/bin/fd

# Debian refuses `pip install` outside a virtual environment, to protect system packages. The tools cannot change those anyway.
rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
python3 -m pip install --quiet --no-cache-dir --root-user-action=ignore "uv==$UV"

ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
# The tools never have root, so `npm install --global` installs into the home.
printf 'prefix=${HOME}/.local\nupdate-notifier=false\nfund=false\n' > /usr/local/lib/node_modules/npm/npmrc
npm install --global --prefix /usr/local --no-audit --no-fund --loglevel=error --cache /tmp/npm-cache "corepack@$COREPACK"
corepack enable --install-directory /usr/local/bin
# These are part of the image, so that they work without a network. The tools own all files of the home.
COREPACK_HOME=/home/agent/.cache/node/corepack COREPACK_NPM_REGISTRY=$(npm config get registry | sed 's,/*$,,') \
  corepack install --global "pnpm@$PNPM" "yarn@$YARN"
chown -R agent:agent /home/agent

# no-new-privileges makes set-uid programs useless in the sandbox, so they lose the bit.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/*.log /var/log/apt /debootstrap /tmp/npm-cache /tmp/certificates.pem ~root/.cache
# Debian's own slim images leave these out too.
rm -rf /usr/share/doc/* /usr/share/man/* /usr/share/info/* /usr/share/locale/*
