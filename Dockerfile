# Requires BuildKit, the default since Docker 23. A release should pin the image by digest.
ARG NODE_IMAGE=node:26-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# No package in the lock needs its install scripts.
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts --no-audit --no-fund
COPY nest-cli.json tsconfig.json tsconfig.build.json ./
COPY src ./src
RUN npm run build && rm dist/.tsbuildinfo

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# Without the embedded database: in a container DATABASE_URL names a server.
RUN --mount=type=cache,target=/root/.npm \
  npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE}
ENV NODE_ENV=production
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json ./
# This user owns nothing under /app, so the process cannot modify its own program.
USER node
EXPOSE 3000
STOPSIGNAL SIGTERM
# Liveness only: an unavailable database is no reason for a restart. /health/ready is for the proxy.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/live`).then((response) => process.exit(response.ok ? 0 : 1), () => process.exit(1))"]
# In exec form, so that Node receives signals directly. Run it with an init (`docker run --init`): the first process of a
# container ignores signals until the program handles them, half a second after its start.
CMD ["node", "dist/main.js"]
