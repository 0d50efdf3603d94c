# syntax=docker/dockerfile:1
# The service as an image: the packages are installed in a stage of their own, the result runs without privileges
# and writes nothing but the volume /data.
FROM node:26.10.0-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# The image has the pinned runtime itself: the one among the packages would take half of their room.
RUN npm ci --omit=dev && rm -r node_modules/node node_modules/.bin/node && npm cache clean --force

FROM node:26.10.0-bookworm-slim
ENV NODE_ENV=production DATA_DIR=/data HOST=0.0.0.0 PORT=3000
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY api ./api
COPY pipeline ./pipeline
COPY data/sample ./data/sample
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 3000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:3000/healthz').then((reply) => process.exit(reply.ok ? 0 : 1), () => process.exit(1))"]
# Node is PID 1: the entry handles SIGTERM itself, and reaps the runs that it starts.
CMD ["node", "api/start.ts"]
