#!/bin/sh
# What makes a Debian system our sandbox image. Run as root inside it, by the Dockerfile or after debootstrap: node and
# npm's folder are in /usr/local by then.
set -eu

# Numeric ids are what counts: the supervisor runs tools as 1000:1000. A fresh named volume takes over the owner.
useradd --create-home --user-group --uid 1000 --shell /bin/bash agent
install -d -o agent -g agent -m 0755 /workspace

# So that `git init && git commit` works at once.
git config --system user.name "Longhaul agent"
git config --system user.email "agent@localhost"
git config --system init.defaultBranch main

# There is no root for the tools: what is installed globally goes to the home, whose .local/bin is on their PATH.
ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm
ln -s ../lib/node_modules/npm/bin/npx-cli.js /usr/local/bin/npx
printf 'prefix=${HOME}/.local\nupdate-notifier=false\nfund=false\n' > /usr/local/lib/node_modules/npm/npmrc
# Debian refuses `pip install` outside a virtual environment, to protect packages of the system; the tools cannot touch those.
rm -f /usr/lib/python3*/EXTERNALLY-MANAGED

# no-new-privileges makes them useless in the sandbox; without the bit they do not tempt either.
find / -xdev -type f -perm /6000 -exec chmod a-s {} +
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/*.log /var/log/apt /debootstrap
