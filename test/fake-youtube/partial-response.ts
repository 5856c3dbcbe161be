import { isJsonObject, type Json } from './json.js';

/** The selected properties: a map from name (or `*`) to the selection below it; empty selects everything. */
type Selection = Map<string, Selection>;

/**
 * Reduces a JSON value to what a `$fields` parameter selects, by the subset of Google's partial response syntax that
 * is in use: `a,b/c,d(e,f/g)` and `*`; arrays are transparent.
 *
 * @returns undefined when the parameter cannot be read
 * @see https://developers.google.com/workspace/drive/api/guides/performance#partial
 */
export function project(value: Json, fields: string): Json {
  const selection = parseFields(fields);
  return selection && store(value, selection);
}

function parseFields(fields: string): Selection | undefined {
  const tokens = fields.match(/[A-Za-z0-9_*-]+|[(),/]|./gs) ?? [];
  const end = { at: 0 };
  const selection = parseList(tokens, end);
  return selection && end.at === tokens.length ? selection : undefined;
}

function parseList(tokens: readonly string[], position: { at: number }): Selection | undefined {
  const selection: Selection = new Map();
  do {
    if (!parsePath(tokens, position, selection)) return undefined;
  } while (taken(tokens, position, ','));
  return selection;
}

function parsePath(tokens: readonly string[], position: { at: number }, into: Selection): boolean {
  const name = tokens[position.at];
  if (name === undefined || !/^[A-Za-z0-9_*-]+$/.test(name)) return false;
  position.at += 1;
  const below = into.get(name) ?? new Map<string, Selection>();
  into.set(name, below);
  if (taken(tokens, position, '/')) return parsePath(tokens, position, below);
  if (!taken(tokens, position, '(')) return true;
  const list = parseList(tokens, position);
  list?.forEach((selection, key) => below.set(key, selection));
  return list !== undefined && taken(tokens, position, ')');
}

function taken(tokens: readonly string[], position: { at: number }, token: string): boolean {
  if (tokens[position.at] !== token) return false;
  position.at += 1;
  return true;
}

function store(value: Json, selection: Selection): Json {
  if (selection.size === 0) return value;
  if (Array.isArray(value)) return value.map((item: Json) => store(item, selection));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, item]) => {
      const below = selection.get(key) ?? selection.get('*');
      return below ? [[key, store(item, below)]] : [];
    }),
  );
}
