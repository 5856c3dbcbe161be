import { describe, expect, it } from '@jest/globals';
import { type InnertubeClientName, loadRequestTemplates } from './request-templates.js';

const CLIENTS: readonly (readonly [InnertubeClientName, string])[] = [
  ['WEB', '1'],
  ['VISIONOS', '101'],
  ['ANDROID', '3'],
  ['ANDROID_VR', '28'],
];

describe('composing InnerTube requests', () => {
  it.each(CLIENTS)('%s speaks under its own name, in English and from the US', async (client, clientId) => {
    const requests = await loadRequestTemplates();
    const request = requests.compose(client, 'player', { videoId: 'abc' }, 'visitor', null);
    expect(request.url.href).toBe('https://www.youtube.com/youtubei/v1/player?prettyPrint=false&alt=json');
    expect(request.headers).toMatchObject({
      'x-youtube-client-name': clientId,
      'content-type': 'application/json',
      origin: 'https://www.youtube.com',
      'user-agent': requests.userAgent(client),
    });
    expect(JSON.parse(request.body ?? '')).toMatchObject({
      videoId: 'abc',
      context: { client: { clientName: client, hl: 'en', gl: 'US', visitorData: 'visitor' } },
    });
    expect(requests.userAgent(client)).toMatch(/youtube|Mozilla/);
  });

  it('puts the visitor data of a request into its header and body, and into no other request', async () => {
    const requests = await loadRequestTemplates();
    const first = requests.compose('WEB', 'browse', {}, 'first', null);
    const second = requests.compose('WEB', 'browse', {}, 'second', null);
    expect(first.headers['x-goog-visitor-id']).toBe('first');
    expect(second.headers['x-goog-visitor-id']).toBe('second');
    expect(`${first.body}${JSON.stringify(first.headers)}`).not.toContain('second');
    expect(`${second.body}${JSON.stringify(second.headers)}`).not.toContain('first');
  });

  it('puts a mask into the query, and generates well-formed local visitor data', async () => {
    const requests = await loadRequestTemplates();
    const { url } = requests.compose('WEB', 'browse', {}, 'v', 'contents,alerts');
    expect(url.searchParams.get('$fields')).toBe('contents,alerts');
    expect(requests.localVisitorData()).toMatch(/^Cg[\w%-]{20,60}$/);
    expect(requests.localVisitorData()).not.toBe(requests.localVisitorData());
  });
});
