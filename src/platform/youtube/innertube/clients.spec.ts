import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { YOUTUBE_CLIENTS, type YoutubeClient } from '../../../config/environment.js';
import { ClientRequests, type InnertubeCall } from './clients.js';

interface ComposedRequest {
  url: string;
  headers: Record<string, string>;
  body: string;
}

/** Requests as youtubei.js 18.1.0 composes them, with the versions that this service sends. */
const COMPOSED = JSON.parse(
  readFileSync(join(import.meta.dirname, '../../../../test/pages/client-requests.json'), 'utf8'),
) as Record<YoutubeClient, ComposedRequest>;

const VIDEO = { videoId: 'aaaaaaaaaaa', contentCheckOk: true, racyCheckOk: true };
const playerOf = (client: YoutubeClient): InnertubeCall => ({
  kind: 'player',
  client,
  path: 'player',
  payload: VIDEO,
  fields: 'videoDetails',
});
const requests = new ClientRequests();

describe('a request of a client', () => {
  it.each(YOUTUBE_CLIENTS)('of %s has the address, the headers and the body that were composed for it', (client) => {
    const { url, headers, body } = requests.compose(playerOf(client), 'issued');
    expect({ url: url.href, headers, body }).toEqual(COMPOSED[client]);
    expect(requests.userAgent(client)).toBe(COMPOSED[client].headers['user-agent']);
  });

  it.each(YOUTUBE_CLIENTS)('of %s has no visitor data in the header or the body when there is none', (client) => {
    const { headers, body } = requests.compose(playerOf(client), null);
    expect(Object.keys(headers)).not.toContain('x-goog-visitor-id');
    expect(body).not.toContain('visitorData');
  });

  it('has the overridden fields of its client in the body and in the headers', () => {
    const fields = { clientVersion: '1.04', osVersion: '26.6.0', userAgent: 'a newer one' };
    const overridden = new ClientRequests({ VISIONOS: fields });
    const request = overridden.compose(playerOf('VISIONOS'), 'issued');
    expect(JSON.parse(request.body ?? '')).toMatchObject({
      context: { client: { ...fields, clientName: 'VISIONOS' } },
    });
    expect(request.headers).toMatchObject({ 'x-youtube-client-version': '1.04', 'user-agent': 'a newer one' });
    expect(overridden.userAgent('VISIONOS')).toBe('a newer one');
    expect(overridden.compose(playerOf('ANDROID'), 'issued')).toEqual(requests.compose(playerOf('ANDROID'), 'issued'));
  });
});
