# The worker. Its sandboxes are another image: client/setup/sandbox-image/Dockerfile.
FROM node:24-bookworm-slim

WORKDIR /app
# Only what it runs by; install scripts are not needed where Node is there already.
COPY package.json package-lock.json .npmrc ./
RUN npm install --omit=dev --no-save --no-audit --no-fund --ignore-scripts && npm cache clean --force

COPY activities activities
COPY workflows workflows
COPY worker worker
COPY scripts scripts

# The workflow bundle is built here, so that no container builds it at its start.
RUN node --import ./scripts/quick-start.mjs scripts/build-bundle.ts && chown -R root:root /app && chmod -R a+rX /app

USER node
CMD ["node", "--import", "./scripts/quick-start.mjs", "worker/main.ts"]
