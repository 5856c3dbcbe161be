import type { Incoming } from '../incoming-request.js';
import { type FakeResponse, textResponse } from '../rendered-bodies.js';
import type { Settings } from '../settings.js';

/** Places of the device's facts, as maintained clients read them. */
const [LANGUAGE, VISITOR, VERSION, FACTS] = [0, 13, 16, 20];

/** `GET /sw.js_data`: JSON after a line that is none, with the version of WEB that the platform uses itself. */
export function clientVersion({ webVersion }: Settings): FakeResponse {
  const facts: unknown[] = Array.from({ length: FACTS }, () => null);
  [facts[LANGUAGE], facts[VISITOR], facts[VERSION]] = ['en', 'CgtmYWtlLXlvdXR1YmU%3D', webVersion];
  const data = [['yt.sw.adr', null, [[facts], 'a key of the API']]];
  return textResponse(200, 'application/json; charset=utf-8', () => `)]}'\n${JSON.stringify(data)}`);
}

/** Whether a request for a list, a name or a channel states a version in its headers that is not served any more. */
export function isRetired({ kind, headers }: Incoming, { webVersionsRetired }: Settings): boolean {
  const version = headers['x-youtube-client-version'];
  const isOfList = kind === 'resolve' || kind.startsWith('browse-');
  return isOfList && headers['x-youtube-client-name'] === '1' && webVersionsRetired.includes(String(version));
}
