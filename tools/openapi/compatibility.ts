import { listOf, objectOf, resolved, type JsonObject } from './json.js';
import { compareSchemas, type Direction } from './schema-changes.js';

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/** Two documents of one interface: the one that clients were written for, and the one that they will meet. */
interface Documents {
  readonly before: JsonObject;
  readonly after: JsonObject;
}

/**
 * What in an OpenAPI document would break a client of an earlier one, a sentence each; none when it only adds.
 * Descriptions, examples and tags are free to change.
 */
export function breakingChanges(before: unknown, after: unknown): readonly string[] {
  const documents: Documents = { before: objectOf(before), after: objectOf(after) };
  const faults: string[] = [];
  const [old, now] = [objectOf(documents.before['paths']), objectOf(documents.after['paths'])];
  for (const [path, item] of Object.entries(old)) {
    for (const method of METHODS.filter((name) => name in objectOf(item))) {
      const where = `${method.toUpperCase()} ${path}`;
      const operation = objectOf(now[path])[method];
      if (operation === undefined) faults.push(`${where}: the operation is gone`);
      else compareOperations(documents, where, objectOf(objectOf(item)[method]), objectOf(operation), faults);
    }
  }
  return faults;
}

function compareOperations(
  documents: Documents,
  where: string,
  before: JsonObject,
  after: JsonObject,
  faults: string[],
): void {
  if (before['operationId'] !== after['operationId']) faults.push(`${where}: the operationId is another`);
  compareSecurity(documents, where, before, after, faults);
  compareParameters(documents, where, before, after, faults);
  compareBodies(documents, where, before, after, faults);
  const [old, now] = [objectOf(before['responses']), objectOf(after['responses'])];
  for (const [status, response] of Object.entries(old)) {
    if (!(status in now)) {
      faults.push(`${where}: the response ${status} is gone`);
      continue;
    }
    const [was, is] = [resolved(documents.before, response), resolved(documents.after, now[status])];
    compareHeaders(documents, `${where} ${status}`, was, is, faults);
    compareContent(documents, 'response', `${where} ${status}`, was, is, faults);
  }
}

/** Whoever could call before can call now: none of the ways to authenticate is gone. */
function compareSecurity(
  documents: Documents,
  where: string,
  before: JsonObject,
  after: JsonObject,
  faults: string[],
): void {
  const waysOf = (document: JsonObject, operation: JsonObject): readonly string[] => {
    const ways = listOf(operation['security'] ?? document['security']);
    return (ways.length === 0 ? [{}] : ways).map((way) => JSON.stringify(way));
  };
  const now = waysOf(documents.after, after);
  const removed = waysOf(documents.before, before).filter((way) => !now.includes(way) && !now.includes('{}'));
  if (removed.length > 0) faults.push(`${where}: the security ${removed.join(', ')} is gone`);
}

function compareParameters(
  documents: Documents,
  where: string,
  before: JsonObject,
  after: JsonObject,
  faults: string[],
): void {
  const [old, now] = [parametersOf(documents.before, before), parametersOf(documents.after, after)];
  for (const [name, parameter] of old) {
    const same = now.get(name);
    if (!same) {
      faults.push(`${where}: the parameter ${name} is gone`);
      continue;
    }
    const comparison = { ...documents, direction: 'request' as const, faults, seen: new Set<string>() };
    compareSchemas(comparison, `${where} ${name}`, parameter['schema'], same['schema']);
  }
  for (const [name, parameter] of now) {
    if (parameter['required'] === true && old.get(name)?.['required'] !== true) {
      faults.push(`${where}: the parameter ${name} is required now`);
    }
  }
}

function parametersOf(document: JsonObject, operation: JsonObject): ReadonlyMap<string, JsonObject> {
  const parameters = listOf(operation['parameters']).map((parameter) => resolved(document, parameter));
  return new Map(parameters.map((parameter) => [`${String(parameter['in'])}:${String(parameter['name'])}`, parameter]));
}

function compareBodies(
  documents: Documents,
  where: string,
  before: JsonObject,
  after: JsonObject,
  faults: string[],
): void {
  const old = resolved(documents.before, before['requestBody']);
  const now = resolved(documents.after, after['requestBody']);
  if (now['required'] === true && old['required'] !== true) faults.push(`${where}: a body is required now`);
  compareContent(documents, 'request', `${where} body`, old, now, faults);
}

function compareContent(
  documents: Documents,
  direction: Direction,
  where: string,
  before: JsonObject,
  after: JsonObject,
  faults: string[],
): void {
  const now = objectOf(after['content']);
  for (const [type, media] of Object.entries(objectOf(before['content']))) {
    if (!(type in now)) {
      faults.push(`${where}: the content type ${type} is gone`);
      continue;
    }
    const comparison = { ...documents, direction, faults, seen: new Set<string>() };
    compareSchemas(comparison, `${where} body`, objectOf(media)['schema'], objectOf(now[type])['schema']);
  }
}

function compareHeaders(
  documents: Documents,
  where: string,
  before: JsonObject,
  after: JsonObject,
  faults: string[],
): void {
  const now = objectOf(after['headers']);
  for (const [name, header] of Object.entries(objectOf(before['headers']))) {
    if (!(name in now)) {
      faults.push(`${where}: the header ${name} is gone`);
      continue;
    }
    const [was, is] = [resolved(documents.before, header), resolved(documents.after, now[name])];
    const comparison = { ...documents, direction: 'response' as const, faults, seen: new Set<string>() };
    compareSchemas(comparison, `${where} ${name}`, was['schema'], is['schema']);
  }
}
