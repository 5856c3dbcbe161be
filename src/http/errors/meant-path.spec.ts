import { describe, expect, it } from '@jest/globals';
import { meantPath } from './error.filter.js';

const PATHS = [
  ...['/channels/{id}/transcripts', '/channels/{id}/uploads', '/playlists/{id}/transcripts', '/videos/{id}/transcript'],
  ...[
    '/transcripts',
    '/usage',
    '/jobs',
    '/jobs/{id}',
    '/jobs/{id}/results',
    '/admin/ui',
    '/admin/organizations',
    '/docs',
  ],
  ...['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp', '/mcp', '/metrics'],
];

describe('the path that is meant', () => {
  it.each([
    ['/Channels/@tidewater/transcripts', '/channels/{id}/transcripts'],
    ['/channel/@tidewater/transcripts', '/channels/{id}/transcripts'],
    ['/channels/@tidewater/transcript', '/channels/{id}/transcripts'],
    ['/channels/@tidewater/transcripts/', '/channels/{id}/transcripts'],
    ['/channels//transcripts', '/channels/{id}/transcripts'],
    ['/channels/transcripts', '/channels/{id}/transcripts'],
    ['/v1/channels/@tidewater/transcripts', '/channels/{id}/transcripts'],
    ['/api/v2/channels/@jobs/uploads', '/channels/{id}/uploads'],
    ['/Channels/https://www.youtube.com/@tidewater/videos/transcripts', '/channels/{id}/transcripts'],
    ['/video/hl-dinghy__/transcripts', '/videos/{id}/transcript'],
    ['/playlist/PL1/transcripts', '/playlists/{id}/transcripts'],
    ['/usage/', '/usage'],
    ['/USAGE', '/usage'],
    ['/transcript', '/transcripts'],
    ['/v1/jobs', '/jobs'],
    ['/v1/jobs/job_x', '/jobs/{id}'],
    ['/jobs/', '/jobs'],
    ['/job/job_x/result', '/jobs/{id}/results'],
    ['/Admin/organisations', '/admin/organizations'],
    ['/admin/ui/', '/admin/ui'],
    ['/.well-known/oauth-protected-resource/', '/.well-known/oauth-protected-resource'],
    ['/mcp/', '/mcp'],
    ['/Docs', '/docs'],
  ])('of %s is %s', (path, meant) => {
    expect(meantPath(path, PATHS)).toBe(meant);
  });

  it.each([
    '/',
    '/favicon.ico',
    '/robots.txt',
    '/wp-login.php',
    '/.env',
    '/.well-known/openid-configuration',
    '/a/b/c',
    '//',
  ])('of %s is none', (path) => {
    expect(meantPath(path, PATHS)).toBeUndefined();
  });

  it('is not looked for in a path that no mistake makes', () => {
    expect(meantPath(`${'/x'.repeat(12)}/usage`, PATHS)).toBeUndefined();
    expect(meantPath(`/${'usage'.repeat(5_000)}`, ['/jobs'])).toBeUndefined();
  });
});
