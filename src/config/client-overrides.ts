import { InvalidFieldsError, type Parser } from './variables.js';

/** What an override can set: fields of `context.client`, of which `userAgent` and `clientVersion` are headers too. */
export interface ClientFields {
  clientVersion?: string;
  userAgent?: string;
  osName?: string;
  osVersion?: string;
  deviceMake?: string;
  deviceModel?: string;
  androidSdkVersion?: number;
}

const TEXT_FIELDS = ['clientVersion', 'userAgent', 'osName', 'osVersion', 'deviceMake', 'deviceModel'] as const;
const NUMBER_FIELDS = ['androidSdkVersion'] as const;

/**
 * Parses overrides of `clients`, such as `{ "VISIONOS": { "clientVersion": "1.04" } }`. The parser throws
 * `InvalidFieldsError` with every fault.
 */
export function clientOverrides<Client extends string>(
  clients: readonly Client[],
): Parser<ReadonlyMap<Client, ClientFields>> {
  return (text) => {
    const parsed = parseObject(text);
    if (!parsed) throw new InvalidFieldsError(['must be a JSON object of clients']);
    const overrides = new Map<Client, ClientFields>();
    const faults: string[] = [];
    for (const [name, value] of Object.entries(parsed)) {
      const client = clients.find((known) => known === name);
      if (!client) faults.push(`must name only the clients ${clients.join(', ')}, not ${shown(name)}`);
      else if (!isObject(value)) faults.push(`must set ${client} to an object of fields`);
      else overrides.set(client, readFields(client, value, faults));
    }
    if (faults.length > 0) throw new InvalidFieldsError(faults);
    return overrides;
  };
}

function readFields(client: string, fields: Readonly<Record<string, unknown>>, faults: string[]): ClientFields {
  const read: ClientFields = {};
  for (const [name, value] of Object.entries(fields)) {
    const textField = TEXT_FIELDS.find((known) => known === name);
    const numberField = NUMBER_FIELDS.find((known) => known === name);
    if (textField) {
      // The values are sent as headers.
      if (typeof value === 'string' && /^[\x20-\x7e]{1,300}$/.test(value)) read[textField] = value;
      else faults.push(`must set ${name} of ${client} to a text of 1 to 300 printable ASCII characters`);
    } else if (numberField) {
      if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) read[numberField] = value;
      else faults.push(`must set ${name} of ${client} to a positive whole number`);
    } else {
      const known = [...TEXT_FIELDS, ...NUMBER_FIELDS].join(', ');
      faults.push(`must set only the fields ${known} of ${client}, not ${shown(name)}`);
    }
  }
  return read;
}

function shown(name: string): string {
  return JSON.stringify(name.slice(0, 80));
}

function parseObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
