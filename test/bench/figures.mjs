import { readFileSync } from 'node:fs';

export function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The median of each named figure over several runs. */
export function medians(runs) {
  const names = Object.keys(runs[0] ?? {}).filter((name) => typeof runs[0][name] === 'number');
  return Object.fromEntries(names.map((name) => [name, median(runs.map((run) => run[name]))]));
}

/** The minimum and maximum, which show the spread of the runs. */
export function spread(values) {
  return [Math.min(...values), Math.max(...values)];
}

/** A goal and its result; `atMost` or `atLeast` gives the direction. */
export function goal(what, value, { atMost, atLeast, unit = '' }) {
  const met = atMost === undefined ? value >= atLeast : value <= atMost;
  const bound = atMost === undefined ? `at least ${atLeast}${unit}` : `at most ${atMost}${unit}`;
  return { what, value, unit, bound, met };
}

/**
 * Where the time of a profile went: the share of each package, folder or part of Node in what was not idle, by the time
 * spent in its own functions.
 */
export function sharesOf(profile, most = 12) {
  const groups = new Map(profile.nodes.map((node) => [node.id, groupOf(node.callFrame)]));
  const spent = new Map();
  profile.samples.forEach((id, index) => {
    const group = groups.get(id);
    // `dispatch` is the inspector taking its orders: starting and stopping the profile itself.
    if (group === '(idle)' || group === 'native dispatch') return;
    spent.set(group, (spent.get(group) ?? 0) + profile.timeDeltas[index] / 1000);
  });
  const total = [...spent.values()].reduce((sum, ms) => sum + ms, 0);
  return [...spent]
    .map(([where, ms]) => ({ where, ms, share: ms / total }))
    .sort((one, other) => other.ms - one.ms)
    .slice(0, most);
}

/** The files of the bundle, as lines: a comment names the source of the lines after it. */
const bundles = new Map();

/** The source of a line (from 0) of a file of the bundle; any other URL as it is. */
function sourceOf(url, lineNumber) {
  if (!/\/dist\/(?!modules\/)/.test(url)) return url;
  if (!bundles.has(url)) bundles.set(url, readFileSync(new URL(url), 'utf8').split('\n'));
  const lines = bundles.get(url);
  for (let index = Math.min(lineNumber, lines.length - 1); index >= 0; index -= 1) {
    const source = /^\s*\/\/ (?:[\w-]+:)?(\S*(?:node_modules|dist\/modules)\/\S+)$/.exec(lines[index])?.[1];
    if (source) return `/${source}`;
  }
  return url;
}

function groupOf({ functionName, url: loaded, lineNumber }) {
  const url = sourceOf(loaded, lineNumber);
  if (functionName === '(program)') return 'native code';
  if (url === '') return functionName.startsWith('(') ? functionName : `native ${functionName || 'code'}`;
  if (url.startsWith('wasm:')) return 'undici (its parser)';
  const packages = url.split('/node_modules/');
  if (packages.length > 1) return /^(?:@[^/]+\/)?[^/]+/.exec(packages.at(-1))[0];
  const ours = /\/dist\/(?:modules\/)?(.+)$/.exec(url)?.[1];
  if (ours) return `src/${ours.replace(/\.js$/, '')}`;
  return url.startsWith('node:') ? url.replace(/^(node:internal\/[^/]+).*/, '$1') : url.split('/').at(-1);
}
