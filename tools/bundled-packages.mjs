/* What esbuild needs to know of the packages, for the programs and for the tests. */
import { pathToFileURL } from 'node:url';

/** Optional packages of NestJS. Their `import()` stays in the bundle and fails only when it is executed. */
export const NOT_INSTALLED = [
  '@fastify/static',
  '@nestjs/websockets/*',
  'amqp-connection-manager',
  'ioredis',
  'kafkajs',
  'mqtt',
];

/** CommonJS packages that are loaded by `import()`. */
export const COMMON_JS_ON_DEMAND = ['@nats-io/transport-node', '@redis/client', 'class-transformer', 'class-validator'];

const NAMED_EXPORTS = 'named-exports';

/** For `import()` of a CommonJS package esbuild provides a default export alone, and Node.js its named exports as well. */
export const namedExports = {
  name: NAMED_EXPORTS,
  setup({ onLoad, onResolve, resolve }) {
    onResolve({ filter: new RegExp(`^(?:${COMMON_JS_ON_DEMAND.join('|')})$`) }, async (args) => {
      const { path, kind, importer, resolveDir, pluginData } = args;
      if (kind !== 'dynamic-import' || pluginData === NAMED_EXPORTS) return undefined;
      const found = await resolve(path, { kind, importer, resolveDir, pluginData: NAMED_EXPORTS });
      return { path: found.path, namespace: NAMED_EXPORTS };
    });
    onLoad({ filter: /./, namespace: NAMED_EXPORTS }, async ({ path }) => {
      const names = Object.keys(await import(pathToFileURL(path))).filter((name) => /^[A-Za-z_$][\w$]*$/.test(name));
      return {
        contents: `export { ${names.join(', ')} } from ${JSON.stringify(path)};`,
        resolveDir: import.meta.dirname,
      };
    });
  },
};
