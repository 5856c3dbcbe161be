import { z } from 'zod';
import { type BudgetSettings, REPORTED_BUDGETS } from './budgets.js';
import type { PoTokens } from './calls/po-token.js';
import { PLAYLIST_SHAPES } from './calls/playlist-page.js';
import { CLIENTS } from './catalogue/model.js';
import { ALL_FAULT_KINDS, type Fault, MATCHABLE_KINDS } from './faults/fault-registry.js';
import type { CurrentCatalogue } from './publish/current-catalogue.js';
import type { Visitors } from './visitors.js';

const amount = z.number().nonnegative();
const share = z.number().min(0).max(1);

const budget = z.strictObject({ burst: amount, perMinute: amount, blockSeconds: amount });

/** What is not given is as reported of the platform. */
const budgets: z.ZodType<BudgetSettings> = z.strictObject({
  player: budget.default(REPORTED_BUDGETS.player),
  timedtext: budget.default(REPORTED_BUDGETS.timedtext),
  list: budget.nullable().default(REPORTED_BUDGETS.list),
  penaltySeconds: amount.default(REPORTED_BUDGETS.penaltySeconds),
  blockSecondsMax: amount.default(REPORTED_BUDGETS.blockSecondsMax),
  badShare: share.default(REPORTED_BUDGETS.badShare),
});

/** How the fake YouTube behaves when nothing goes wrong. */
const settings = z.strictObject({
  latencyMs: amount.describe('minimum latency of every response'),
  playlistShape: z.enum(PLAYLIST_SHAPES),
  fieldsIgnored: z
    .array(z.enum(CLIENTS))
    .readonly()
    .describe('clients whose $fields is ignored: the platform is known to honour it for WEB and for ANDROID’s reel'),
  visitorDataRequired: z
    .boolean()
    .describe('whether player requests without visitor data issued for their client and address get a bot check'),
  listEndsAt: amount.nullable().describe('where every list ends, whatever its header states; null: at its end'),
  countryOf: z.string().nullable().describe('the address in whose country the videos play that no other country plays'),
  webVersion: z.string().describe('the version of WEB that the platform states in /sw.js_data'),
  webVersionsRetired: z
    .array(z.string())
    .readonly()
    .describe('versions of WEB that get 400 for lists, names and channels when the headers of a request state them'),
  budgets: budgets.nullable().describe('what each address may request; null: anything'),
});
export type Settings = z.output<typeof settings>;

const kind = z.enum(MATCHABLE_KINDS);
const match = z
  .strictObject({
    kind: z.union([kind, z.array(kind)]),
    path: z.string().refine(isExpression, 'Not a regular expression'),
    client: z.enum(CLIENTS),
    clientVersion: z.string(),
    videoId: z.string(),
    channelId: z.string(),
    egress: z.string(),
  })
  .partial();

const faults = z.array(
  z
    .strictObject({
      kind: z.enum(ALL_FAULT_KINDS),
      match,
      rate: share,
      times: amount,
      playability: z.string(),
      location: z.string(),
      retryAfterSeconds: amount,
    })
    .partial()
    .required({ kind: true }),
);

const changes = settings.partial().extend({ faults: faults.optional() });

const DEFAULTS: Settings = {
  latencyMs: 0,
  playlistShape: 'new',
  fieldsIgnored: [],
  visitorDataRequired: false,
  listEndsAt: null,
  countryOf: null,
  webVersion: '2.20261120.01.00',
  webVersionsRetired: [],
  budgets: null,
};

export function settingsOf(given: Partial<Settings>): Settings {
  const names = Object.keys(DEFAULTS).filter((name) => name in given);
  return { ...DEFAULTS, ...Object.fromEntries(names.map((name) => [name, Reflect.get(given, name)])) };
}

/** The fake YouTube cannot read an option or a control request; the message gives the reason in one line. */
export class UnreadableError extends Error {}

/**
 * Reads settings and faults from JSON.
 *
 * @throws UnreadableError
 */
export function readChanges(text: string): { faults?: Fault[]; settings: Partial<Settings> } {
  const { faults: given, ...changed } = validJson(changes, text);
  return { ...(given && { faults: given as Fault[] }), settings: changed as Partial<Settings> };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new UnreadableError('The text is not JSON');
  }
}

/**
 * Reads JSON by a schema.
 *
 * @throws UnreadableError
 */
export function validJson<Schema extends z.ZodType>(schema: Schema, text: string): z.output<Schema> {
  const { data, error } = schema.safeParse(parsed(text));
  const [issue] = error?.issues ?? [];
  if (issue) throw new UnreadableError(`${['settings', ...issue.path].join('.')}: ${issue.message}`);
  return data as z.output<Schema>;
}

function isExpression(source: string): boolean {
  try {
    return new RegExp(source).source.length > 0;
  } catch {
    return false;
  }
}

/** What the responses depend on besides the request. */
export interface ServerState {
  readonly settings: Settings;
  readonly visitors: Visitors;
  readonly tokens: PoTokens;
  readonly catalogue: CurrentCatalogue;
}
