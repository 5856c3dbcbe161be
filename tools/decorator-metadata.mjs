// esbuild adds this import to every module of the bundle. A package that is injected directly also adds an object with its exports
// to every module.
import 'reflect-metadata';
