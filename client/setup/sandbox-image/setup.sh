#!/bin/sh
# What makes a Debian system our sandbox image. Run as root inside it, by the Dockerfile or after debootstrap: node, its
# headers and npm's folder are in /usr/local by then.
set -eu
COREPACK=0.36.0
# What pnpm and yarn mean where a project does not say; its `packageManager` fetches another one. With their SHA-512, because
# a mirror may leave out the signatures that corepack asks for otherwise. pnpm 12 fetches a program of its own: not offline.
PNPM=11.28.11+sha512.740184d10f81f5d5b165be88560ee7ba62406c4134896abc27a580109eec2f47c1e41d91251c944c2cababcb1c22461799ebb72de2ec625af2030b0e36c735a3
YARN=1.22.22+sha512.a6b2f7906b721bba3d67d4aff083df04dad64c399707841b7acf00f6b133b7ac24255f2652fa22ae3534329dc6180534e98d17432037ff6fd140556e2bb3137e
UV=0.13.9
PATH=/usr/local/bin:$PATH

if [ -n "${CERTIFICATES:-}" ]; then
  { cat /etc/ssl/certs/ca-certificates.crt; printf '\n%s\n' "$CERTIFICATES"; } > /tmp/certificates.pem
  export NODE_EXTRA_CA_CERTS=/tmp/certificates.pem PIP_CERT=/tmp/certificates.pem
fi

# Numeric ids are what counts: the supervisor runs tools as 1000:1000. A fresh named volume takes over the owner.
useradd --create-home --user-group --uid 1000 --shell /bin/bash agent
install -d -o agent -g agent -m 0755 /workspace

# So that `git init && git commit` works at once.
git config --system user.name "Longhaul agent"
git config --system user.email "agent@localhost"
git config --system init.defaultBranch main
git lfs install --system --skip-repo
ln -s fdfind /usr/bin/fd

# Debian refuses `pip install` outside a virtual environment, to protect packages of the system; the tools cannot touch those.
rm -f /usr/lib/python3*/EXTERNALLY-MANAGED
python3 -m pip install --quiet --no-cache-dir --root-user-action=ignore "uv==$UV"

ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
# There is no root for the tools: `npm install --global` goes to the home.
printf 'prefix=${HOME}/.local\nupdate-notifier=false\nfund=false\n' > /usr/local/lib/node_modules/npm/npmrc
npm install --global --prefix /usr/local --no-audit --no-fund --loglevel=error --cache /tmp/npm-cache "corepack@$COREPACK"
corepack enable --install-directory /usr/local/bin
# In the image, so that they work without a network. Files of the home are the tools' own.
COREPACK_HOME=/home/agent/.cache/node/corepack COREPACK_NPM_REGISTRY=$(npm config get registry | sed 's,/*$,,') \
  corepack install --global "pnpm@$PNPM" "yarn@$YARN"
chown -R agent:agent /home/agent

# no-new-privileges makes them useless in the sandbox; without the bit they do not tempt either.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/*.log /var/log/apt /debootstrap /tmp/npm-cache /tmp/certificates.pem ~root/.cache
# As Debian's own images leave out.
rm -rf /usr/share/doc/* /usr/share/man/* /usr/share/info/* /usr/share/locale/*
