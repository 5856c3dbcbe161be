// Preloaded with --import: writes the address of every module that the program imports to the file in LOADED_MODULES.
import { register } from 'node:module';

const source = `
  import { appendFileSync } from 'node:fs';
  export async function load(url, context, next) {
    appendFileSync(${JSON.stringify(process.env.LOADED_MODULES)}, url + '\\n');
    return next(url, context);
  }`;
register(`data:text/javascript,${encodeURIComponent(source)}`);
