import fc from 'fast-check';

/** What happens to one value somewhere inside a page. */
type Change = { kind: 'removed' } | { kind: 'emptied' } | { kind: 'doubled' } | { kind: 'replaced'; by: unknown };

const change: fc.Arbitrary<Change> = fc.oneof(
  fc.constant<Change>({ kind: 'removed' }),
  fc.constant<Change>({ kind: 'emptied' }),
  fc.constant<Change>({ kind: 'doubled' }),
  fc
    .oneof(fc.constantFrom<unknown>(null, 0, -1, '', 'x', true, [], {}, [null], { '': [] }), fc.jsonValue())
    .map((by): Change => ({ kind: 'replaced', by })),
);

/**
 * A page as the platform might change it: at one to three places a key removed, a type changed, or a list emptied or
 * doubled. Each place is found by a walk from the top, so that the outer levels are hit as often as the many inner ones.
 */
export function mutationsOf(page: unknown): fc.Arbitrary<unknown> {
  const place = fc.array(fc.nat(), { minLength: 1, maxLength: 24 });
  return fc
    .array(fc.tuple(place, change), { minLength: 1, maxLength: 3 })
    .map((changes) => changes.reduce((current, [steps, each]) => changed(current, steps, each), page));
}

/** Copies what lies on the way only; a page is shared by many runs. */
function changed(value: unknown, steps: readonly number[], change: Change): unknown {
  const [step, ...rest] = steps;
  if (typeof value !== 'object' || value === null || step === undefined) return applied(value, change);
  const entries: [string, unknown][] = Object.entries(value);
  const index = step % Math.max(1, entries.length);
  const entry = entries[index];
  if (entry === undefined) return applied(value, change);
  if (rest.length === 0 && change.kind === 'removed') entries.splice(index, 1);
  else entries[index] = [entry[0], changed(entry[1], rest, change)];
  return Array.isArray(value) ? entries.map(([, element]) => element) : Object.fromEntries(entries);
}

function applied(value: unknown, change: Change): unknown {
  switch (change.kind) {
    case 'removed':
      return undefined;
    case 'replaced':
      return change.by;
    case 'emptied':
      return Array.isArray(value) ? [] : typeof value === 'object' ? {} : '';
    case 'doubled':
      return Array.isArray(value) ? [...(value as unknown[]), ...(value as unknown[])] : [value, value];
  }
}
