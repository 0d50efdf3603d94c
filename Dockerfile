# syntax=docker/dockerfile:1
# The service as an image: packages are installed in a separate stage; the result runs without privileges
# and writes only to the volume /data.
FROM node:26.10.0-bookworm-slim@sha256:662933cf47f013bc8e4beb31a6116448427a82057ba7c42c97e4c5ba766504c2 AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The base image has the pinned runtime, so the one among the packages, half of their size, is removed.
RUN npm ci --omit=dev --ignore-scripts && rm -r node_modules/node-linux-* node_modules/.bin/node && npm cache clean --force

FROM node:26.10.0-bookworm-slim@sha256:662933cf47f013bc8e4beb31a6116448427a82057ba7c42c97e4c5ba766504c2
ENV NODE_ENV=production DATA_DIR=/data HOST=0.0.0.0 PORT=3000
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY api ./api
COPY pipeline ./pipeline
COPY data/sample ./data/sample
RUN install --directory --owner=node --group=node --mode=755 /data && install --directory --owner=node --group=node --mode=700 /backups
USER node
VOLUME ["/data", "/backups"]
EXPOSE 3000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:3000/healthz').then((reply) => process.exit(reply.ok ? 0 : 1), () => process.exit(1))"]
# Node is PID 1: the entry handles SIGTERM itself, and reaps its child processes.
CMD ["node", "api/start.ts"]
