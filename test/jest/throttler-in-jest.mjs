// Stands for @nestjs/throttler under Jest: the package is CommonJS and requires Nest, which is ES modules. Node can do
// that; Jest can from Node 24.9 on only. The same files are run here, with Nest as it was imported.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import * as common from '@nestjs/common';
import * as core from '@nestjs/core';

const nodeRequire = createRequire(import.meta.url);
const loaded = new Map(Object.entries({ '@nestjs/common': common, '@nestjs/core': core }));

function load(path) {
  if (loaded.has(path)) return loaded.get(path);
  const module = { exports: {} };
  loaded.set(path, module.exports);
  const requireFrom = (name) => {
    if (name.startsWith('.')) return load(join(dirname(path), `${name}.js`));
    return loaded.get(name) ?? nodeRequire(name);
  };
  new Function('require', 'exports', 'module', readFileSync(path, 'utf8'))(requireFrom, module.exports, module);
  return module.exports;
}

export const { ThrottlerGuard, ThrottlerModule, normalizeIp } = load(
  join(import.meta.dirname, '../../node_modules/@nestjs/throttler/dist/index.js'),
);
