#!/bin/sh
# Turns a Debian system into our sandbox image. Runs as root inside it, from the Dockerfile or after mmdebstrap. Node, its
# headers and npm's folder must already be in /usr/local.
set -eu
COREPACK=0.36.0
# The versions of pnpm and yarn for projects that name none; a project's `packageManager` downloads another one. They have a
# SHA-512, because corepack otherwise requires signatures, which a mirror may lack. pnpm 12 downloads a further program, so
# it does not work offline.
PNPM=11.28.11+sha512.740184d10f81f5d5b165be88560ee7ba62406c4134896abc27a580109eec2f47c1e41d91251c944c2cababcb1c22461799ebb72de2ec625af2030b0e36c735a3
YARN=1.22.22+sha512.a6b2f7906b721bba3d67d4aff083df04dad64c399707841b7acf00f6b133b7ac24255f2652fa22ae3534329dc6180534e98d17432037ff6fd140556e2bb3137e
UV=0.13.9
PATH=/usr/local/bin:$PATH

if [ -n "${CERTIFICATES:-}" ]; then
  { cat /etc/ssl/certs/ca-certificates.crt; printf '\n%s\n' "$CERTIFICATES"; } > /tmp/certificates.pem
  export NODE_EXTRA_CA_CERTS=/tmp/certificates.pem PIP_CERT=/tmp/certificates.pem
fi

# The numeric ids matter: the supervisor runs tools as 1000:1000. A new named volume gets the owner of this folder.
useradd --create-home --user-group --uid 1000 --shell /bin/bash agent
install -d -o agent -g agent -m 0755 /workspace

# With these settings, `git init && git commit` works at once.
git config --system user.name "Longhaul agent"
git config --system user.email "agent@localhost"
git config --system init.defaultBranch main
git lfs install --system --skip-repo
ln -s fdfind /usr/bin/fd

# Debian refuses `pip install` outside a virtual environment, to protect system packages. The tools cannot change those.
rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
python3 -m pip install --quiet --no-cache-dir --root-user-action=ignore "uv==$UV"

ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
# The tools have no root, so `npm install --global` installs into the home folder.
printf 'prefix=${HOME}/.local\nupdate-notifier=false\nfund=false\n' > /usr/local/lib/node_modules/npm/npmrc
npm install --global --prefix /usr/local --no-audit --no-fund --loglevel=error --cache /tmp/npm-cache "corepack@$COREPACK"
corepack enable --install-directory /usr/local/bin
# Part of the image, so that they work without a network. The tools own the files of the home folder.
COREPACK_HOME=/home/agent/.cache/node/corepack COREPACK_NPM_REGISTRY=$(npm config get registry | sed 's,/*$,,') \
  corepack install --global "pnpm@$PNPM" "yarn@$YARN"
chown -R agent:agent /home/agent

# With no-new-privileges, the setuid and setgid bits have no effect in the sandbox; no file needs to have them.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/*.log /var/log/apt /tmp/npm-cache /tmp/certificates.pem ~root/.cache
# Debian's own images leave these out too.
rm -rf /usr/share/doc/* /usr/share/man/* /usr/share/info/* /usr/share/locale/*
