import { describe, expect, it } from '@jest/globals';
import type { YoutubeClient } from '../../../config/environment.js';
import { loadRequestTemplates } from './request-templates.js';

const CLIENTS: readonly (readonly [YoutubeClient, string, string, string])[] = [
  ['WEB', 'WEB', '1', '2.20260805.01.00'],
  ['VISIONOS', 'VISIONOS', '101', '1.02'],
  ['ANDROID', 'ANDROID', '3', '21.26.364'],
  ['IOS', 'IOS', '5', '21.26.4'],
  ['ANDROID_REEL', 'ANDROID', '3', '21.03.36'],
  ['ANDROID_VR', 'ANDROID_VR', '28', '1.65.10'],
];

describe('composing InnerTube requests', () => {
  it.each(CLIENTS)(
    '%s speaks under its own name, in English and from the US',
    async (client, clientName, id, version) => {
      const requests = await loadRequestTemplates();
      const request = requests.compose(client, 'player', { videoId: 'abc' }, 'visitor', null);
      expect(request.url.href).toBe('https://www.youtube.com/youtubei/v1/player?prettyPrint=false&alt=json');
      expect(request.headers).toMatchObject({
        'x-youtube-client-name': id,
        'x-youtube-client-version': version,
        'content-type': 'application/json',
        origin: 'https://www.youtube.com',
        'user-agent': requests.userAgent(client),
      });
      expect(JSON.parse(request.body ?? '')).toMatchObject({
        videoId: 'abc',
        context: { client: { clientName, clientVersion: version, hl: 'en', gl: 'US', visitorData: 'visitor' } },
      });
      expect(requests.userAgent(client)).toMatch(/youtube|Mozilla/);
    },
  );

  it('puts the visitor data of a request into its header and body, and into no other request', async () => {
    const requests = await loadRequestTemplates();
    const first = requests.compose('WEB', 'browse', {}, 'first', null);
    const second = requests.compose('WEB', 'browse', {}, 'second', null);
    expect(first.headers['x-goog-visitor-id']).toBe('first');
    expect(second.headers['x-goog-visitor-id']).toBe('second');
    expect(`${first.body}${JSON.stringify(first.headers)}`).not.toContain('second');
    expect(`${second.body}${JSON.stringify(second.headers)}`).not.toContain('first');
  });

  it('puts a mask into the query', async () => {
    const requests = await loadRequestTemplates();
    const { url } = requests.compose('WEB', 'browse', {}, 'v', 'contents,alerts');
    expect(url.searchParams.get('$fields')).toBe('contents,alerts');
  });

  it.each(CLIENTS)(
    '%s sends no visitor data, neither in the header nor in the body, when there is none',
    async (client) => {
      const request = (await loadRequestTemplates()).compose(client, 'visitor_id', {}, null, null);
      expect(Object.keys(request.headers)).not.toContain('x-goog-visitor-id');
      expect(request.body).not.toContain('visitorData');
    },
  );

  it('overrides the fields of one client in the body and in the headers', async () => {
    const fields = { clientVersion: '1.04', osVersion: '26.6.0', userAgent: 'a newer one' };
    const requests = (await loadRequestTemplates()).withOverrides(new Map([['VISIONOS', fields] as const]));
    const request = requests.compose('VISIONOS', 'player', {}, null, null);
    expect(JSON.parse(request.body ?? '')).toMatchObject({
      context: { client: { ...fields, clientName: 'VISIONOS' } },
    });
    expect(request.headers).toMatchObject({ 'x-youtube-client-version': '1.04', 'user-agent': 'a newer one' });
    expect(requests.userAgent('VISIONOS')).toBe('a newer one');
    expect(requests.userAgent('ANDROID')).toMatch(/^com\.google\.android\.youtube\/21\.26\.364 /);
  });
});
