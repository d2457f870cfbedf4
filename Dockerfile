# The worker. Sandboxes use another image: client/setup/sandbox-image/Dockerfile.
FROM node:24-bookworm-slim

# Clones and pushes the repositories of sessions; the folder is a volume's.
RUN apt-get update && apt-get install -y --no-install-recommends git openssh-client ca-certificates \
  && rm -rf /var/lib/apt/lists/* && install -d -o node -g node /var/lib/longhaul

WORKDIR /app
# Only what it needs at run time, in the locked versions. Install scripts are not needed, because Node is already there.
COPY package.json package-lock.json .npmrc ./
RUN npm ci --omit=dev --no-audit --no-fund --ignore-scripts && npm cache clean --force

COPY activities activities
COPY workflows workflows
COPY temporal temporal
COPY worker worker
COPY scripts scripts

# The workflow bundle is built here, so that no container has to build it when it starts. Files that a strict umask kept to
# their owner become readable; node_modules already is, and changed as a whole it would be in the image twice (380 MB).
RUN node --import ./scripts/quick-start.mjs scripts/build-bundle.ts \
  && chmod -R a+rX package.json activities workflows temporal worker scripts node_modules/.cache

USER node
CMD ["node", "--import", "./scripts/quick-start.mjs", "worker/main.ts"]
