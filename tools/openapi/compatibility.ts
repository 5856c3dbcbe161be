import { listOf, objectOf, resolved, type JsonObject } from './json.js';
import { compareSchemas, type Direction } from './schema-changes.js';

const METHODS = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace'];

/** Two versions of an OpenAPI document: the one that clients were written for, and the new one. */
interface Documents {
  readonly before: JsonObject;
  readonly after: JsonObject;
}

/**
 * Lists the changes of an OpenAPI document that break clients of an earlier version, one sentence each. Additions and
 * changes of descriptions, examples and tags do not.
 */
export function breakingChanges(before: unknown, after: unknown): readonly string[] {
  const documents: Documents = { before: objectOf(before), after: objectOf(after) };
  const faults: string[] = [];
  const [old, now] = [objectOf(documents.before['paths']), objectOf(documents.after['paths'])];
  for (const [path, item] of Object.entries(old)) {
    for (const method of METHODS.filter((name) => name in objectOf(item))) {
      const where = `${method.toUpperCase()} ${path}`;
      const operation = objectOf(now[path])[method];
      if (operation === undefined) faults.push(`${where}: the operation was removed`);
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
  if (before['operationId'] !== after['operationId']) faults.push(`${where}: the operationId changed`);
  compareSecurity(documents, where, before, after, faults);
  compareParameters(documents, where, before, after, faults);
  compareBodies(documents, where, before, after, faults);
  const [old, now] = [objectOf(before['responses']), objectOf(after['responses'])];
  for (const [status, response] of Object.entries(old)) {
    if (!(status in now)) {
      faults.push(`${where}: the response ${status} was removed`);
      continue;
    }
    const [was, is] = [resolved(documents.before, response), resolved(documents.after, now[status])];
    compareHeaders(documents, `${where} ${status}`, was, is, faults);
    compareContent(documents, 'response', `${where} ${status}`, was, is, faults);
  }
}

/** Every earlier authentication scheme must still be accepted. */
function compareSecurity(
  documents: Documents,
  where: string,
  before: JsonObject,
  after: JsonObject,
  faults: string[],
): void {
  const schemesOf = (document: JsonObject, operation: JsonObject): readonly string[] => {
    const schemes = listOf(operation['security'] ?? document['security']);
    return (schemes.length === 0 ? [{}] : schemes).map((scheme) => JSON.stringify(scheme));
  };
  const now = schemesOf(documents.after, after);
  const removed = schemesOf(documents.before, before).filter((scheme) => !now.includes(scheme) && !now.includes('{}'));
  if (removed.length > 0) faults.push(`${where}: the security ${removed.join(', ')} was removed`);
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
      faults.push(`${where}: the parameter ${name} was removed`);
      continue;
    }
    const comparison = { ...documents, direction: 'request' as const, faults, seen: new Set<string>() };
    compareSchemas(comparison, `${where} ${name}`, parameter['schema'], same['schema']);
  }
  for (const [name, parameter] of now) {
    if (parameter['required'] === true && old.get(name)?.['required'] !== true) {
      faults.push(`${where}: the parameter ${name} is now required`);
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
  if (now['required'] === true && old['required'] !== true) faults.push(`${where}: a body is now required`);
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
      faults.push(`${where}: the content type ${type} was removed`);
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
      faults.push(`${where}: the header ${name} was removed`);
      continue;
    }
    const [was, is] = [resolved(documents.before, header), resolved(documents.after, now[name])];
    const comparison = { ...documents, direction: 'response' as const, faults, seen: new Set<string>() };
    compareSchemas(comparison, `${where} ${name}`, was['schema'], is['schema']);
  }
}
