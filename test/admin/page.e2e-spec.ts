import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { JobsService } from '../../src/jobs/jobs.service.js';
import { SubscriptionsService } from '../../src/jobs/subscriptions.service.js';
import { Chromium, chromiumIsInstalled, type ChromiumPage } from '../harness/chromium.js';
import { send } from '../harness/http-request.js';
import { startService, type TestOrganization, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { Program } from '../process/program.js';

const ADMIN_TOKEN = 'an-admin-token-of-the-tests-5d9b';
const TOKEN = { Authorization: `Bearer ${ADMIN_TOKEN}` };
const EXTERNAL_ID = 'External ID, what tokens call it (empty: none)';
/** The headings and actions, and with `time` the dates, that do not fit on their line. */
const brokenWords = (
  selector = 'th, td[data-label="What"]',
): string => `[...document.querySelectorAll('${selector}')].filter((cell) => {
  const range = document.createRange();
  range.selectNodeContents(cell);
  return new Set([...range.getClientRects()].map(({ top }) => top)).size > 1;
}).map(({ textContent }) => textContent)`;
const HOSTILE = '<img src=x onerror="document.title=1"><script>alert(1)</script>\u202e"\'&amp;';

let service: TestService;
beforeAll(async () => {
  service = await startService({ environment: { ADMIN_TOKEN, JOB_CONCURRENCY: 0 } });
});
afterAll(() => service.close());

const admin = async (path: string): Promise<any> =>
  (await service.request('GET', `/admin${path}`, TOKEN)).body as unknown;

async function patch(id: string, body: object): Promise<void> {
  const headers = { ...TOKEN, 'Content-Type': 'application/json' };
  const { status } = await service.request('PATCH', `/admin/organizations/${id}`, headers, JSON.stringify(body));
  expect(status).toBe(200);
}

describe('the page for the operator', () => {
  it('is served without data and without a token, with a policy of its own', async () => {
    const { status, headers, text } = await service.request('GET', '/admin/ui');
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      200,
      'text/html; charset=utf-8',
      'private, no-store',
    ]);
    const policy = String(headers['content-security-policy']);
    expect(policy).toMatch(/^default-src 'none';.*frame-ancestors 'none'.*connect-src 'self'/);
    expect(policy).toMatch(/script-src( 'sha256-[^ ;]+'){2};style-src 'sha256-[^ ;]+';/);
    expect(policy).not.toMatch(/unsafe|nonce|\*/);
    expect(text).not.toMatch(
      / on[a-z]+=| style=|https?:\/\/(?!www\.w3\.org\/2000\/svg)|innerHTML|localStorage|sessionStorage/,
    );
    expect(text.split('\n').length).toBeLessThanOrEqual(552);
    expect((await service.request('HEAD', '/admin/ui')).status).toBe(200);
    expect((await service.request('POST', '/admin/ui')).status).toBe(405);
  });

  it('is in the built program', async () => {
    const program = Program.run('main.js', {
      ...{ DATABASE_URL: service.databaseUrl, YOUTUBE_BASE_URL: service.fakeYoutube.url, ADMIN_TOKEN },
    });
    try {
      const response = await send(await program.url(), 'GET', '/admin/ui');
      expect([response.status, response.text]).toEqual([200, (await service.request('GET', '/admin/ui')).text]);
    } finally {
      await program.stop();
    }
  });

  it('does not exist without admin access', async () => {
    const without = await startService();
    try {
      expect((await without.request('GET', '/admin/ui')).status).toBe(404);
    } finally {
      await without.close();
    }
  });
});

(chromiumIsInstalled ? describe : describe.skip)('the page for the operator in Chromium', () => {
  let chromium: Chromium;
  let page: ChromiumPage;
  let organization: TestOrganization;
  let jobId: string;

  beforeAll(async () => {
    chromium = Chromium.start();
    organization = await service.organization({ monthlyLimit: 40 });
    const { id: organizationId, keyId } = organization;
    const payer = { organizationId, keyId, requestId: 'test' };
    const videos = ['tw-tea_____', 'hl-dinghy__'];
    await service.app.get(JobsService).create({ videos }, payer);
    jobId = (await service.app.get(JobsService).create({ channel: '@tidewater' }, payer)).id;
    const { id } = await service.app.get(SubscriptionsService).create({ channel: '@harbourlight' }, payer);
    await service.query(`UPDATE jobs SET state = 'paused', reason = 'upstream_blocked' WHERE id = '${id}'`);
    await service.get('/channels/@tidewater/transcripts?limit=3', organization.key);
    await service.query(
      `INSERT INTO libraries (organization_id, videos, bytes) VALUES ('${organizationId}', 7, 3000000)`,
    );
  });
  afterAll(() => chromium.close());
  beforeEach(async () => {
    page = await chromium.open();
    await page.resize(1200, 900);
    await page.open(`${service.url}/admin/ui`);
  });
  afterEach(async () => {
    const { problems, requests } = page;
    const stored = await page.evaluate<string>(
      'JSON.stringify([location.href, document.cookie, { ...localStorage }, { ...sessionStorage }])',
    );
    await page.close();
    expect(problems).toEqual([]);
    expect(requests.filter((url) => !url.startsWith(`${service.url}/admin/`) && url !== 'data:,')).toEqual([]);
    expect([stored, ...requests].join('\n')).not.toContain(ADMIN_TOKEN);
  });

  async function signIn(token = ADMIN_TOKEN): Promise<void> {
    await until(async () => (await page.focused()) === 'Admin token or access token');
    await page.type(token);
    await page.press('Enter');
  }

  /** Reaches a control by the keyboard and presses it. */
  async function use(name: string): Promise<void> {
    await page.tabTo(name);
    await page.press('Enter');
  }

  const untilTitled = (name: string): Promise<void> =>
    until(() => page.evaluate<boolean>(`document.querySelector('main h2')?.textContent === ${JSON.stringify(name)}`));

  /** Waits until the page says what was done and has loaded again. */
  const untilDone = (message: string): Promise<void> =>
    until(
      async () =>
        (await page.evaluate<boolean>('document.activeElement.matches("main h2")')) &&
        (await page.text()).includes(message),
    );

  async function openOrganization(): Promise<void> {
    await signIn();
    await untilTitled('Organizations');
    await page.tabTo('Name or ID');
    await page.type(organization.id);
    await page.press('Enter');
    await untilTitled('Test pro');
  }

  it('says why a token was refused, and shows nothing', async () => {
    const width = await page.evaluate<number>('document.querySelector("#sign-in input").getBoundingClientRect().width');
    expect(width).toBeLessThanOrEqual(512);
    await signIn('wrong');
    await page.untilShown('This is not the admin token, or was not copied exactly.');
    await signIn(organization.key);
    await page.untilShown('This is an API key. Use the admin token instead.');
    expect(await page.evaluate('document.querySelector("main").childElementCount')).toBe(0);
    expect(await page.accessible('alert')).not.toEqual([]);
    await signIn();
    await untilTitled('Organizations');
    await use('Sign out');
    await until(async () => (await page.focused()) === 'Admin token or access token');
    expect(await page.evaluate('document.querySelector("main").childElementCount')).toBe(0);
    expect(await page.evaluate('document.querySelector("input").value')).toBe('');
  });

  it('creates an organization with any name, changes its plan, issues a key once, revokes it, and deletes it', async () => {
    await signIn();
    await untilTitled('Organizations');
    await use('Create an organization');
    expect(await page.focused()).toBe('Name');
    await page.type(HOSTILE);
    await page.tabTo('Monthly limit (empty: that of the plan)');
    await page.type('7');
    await page.tabTo(EXTERNAL_ID);
    await page.type('acme');
    await page.press('Enter');
    await untilTitled(HOSTILE);
    const made = (await admin('/organizations')).organizations.at(-1);
    expect(made).toMatchObject({ name: HOSTILE, plan: 'pro', monthlyLimit: 7, externalId: 'acme' });

    await use('Change');
    expect(await page.focused()).toBe('Plan');
    await page.press('Home');
    await use('Change');
    await untilDone('Changed.');
    expect(await admin(`/organizations/${made.id}`)).toMatchObject({
      ...{ plan: 'free', monthlyLimit: 7, externalId: 'acme' },
    });
    await use('Change');
    await page.tabTo(EXTERNAL_ID);
    await page.press('Backspace');
    await use('Change');
    await untilDone('Changed.');
    expect(await admin(`/organizations/${made.id}`)).toMatchObject({ monthlyLimit: 7, externalId: null });
    expect(await page.text()).toContain('externalId: –');

    await use('Issue a key');
    await page.tabTo('Monthly limit (empty: none of its own)');
    await page.type('5');
    await page.tabTo('Scopes');
    await page.press('ArrowDown');
    await use('Issue');
    await page.untilShown('Store the key now');
    const key = await page.evaluate<string>('document.querySelector("#new-key").value');
    expect((await service.get('/usage', key)).body).toMatchObject({ organization: made.id, limit: 7 });
    await page.press('Escape');
    expect(await page.evaluate('document.querySelector("#new-key").value')).toBe(key);
    await use('I have stored it');
    await untilDone('Issued a key.');
    expect(await page.evaluate('document.documentElement.outerHTML')).not.toContain(key);
    expect((await admin(`/organizations/${made.id}/keys`)).keys).toMatchObject([
      { monthlyLimit: 5, expiresAt: null, scopes: ['read'] },
    ]);
    expect(await page.evaluate(`document.querySelector('td[data-label="Limit"]').textContent`)).toBe('5');
    expect(await page.text()).toContain('name: default, scopes: read, expiresAt: –, monthlyLimit: 5');

    await use('Revoke');
    expect(await page.focused()).toBe('Back');
    await page.press('Enter');
    expect((await service.get('/usage', key)).status).toBe(200);
    await use('Revoke');
    await use('Revoke');
    await untilDone('Revoked');
    expect((await service.get('/usage', key)).status).toBe(401);

    await use('Delete');
    expect(await page.focused()).toBe('Back');
    await use('Delete');
    await untilTitled('Organizations');
    await untilDone('Deleted');
    expect((await admin('/organizations')).organizations).not.toContainEqual(made);
  });

  it('finds organizations by a part of their names', async () => {
    const create = (name: string) =>
      service.request(
        'POST',
        '/admin/organizations',
        { ...TOKEN, 'Content-Type': 'application/json' },
        JSON.stringify({ name, plan: 'free' }),
      );
    for (const name of ['Lighthouse & Söhne', 'Harbour pilots']) await create(name);
    await signIn();
    await untilTitled('Organizations');
    await page.tabTo('Name or ID');
    await page.type('house & sö');
    await page.press('Enter');
    await page.untilShown('Found organizations');
    const names = `[...document.querySelectorAll('td[data-label="Name"]')].map(({ textContent }) => textContent)`;
    expect(await page.evaluate(names)).toEqual(['Lighthouse & Söhne']);
    await page.tabTo('Name or ID');
    await page.type('no such name');
    await page.press('Enter');
    await page.untilShown('None.');
  });

  it('changes only what was entered, not what another operator has changed meanwhile', async () => {
    const { id } = await service.organization({ monthlyLimit: 40 });
    await signIn();
    await untilTitled('Organizations');
    await page.tabTo('Name or ID');
    await page.type(id);
    await page.press('Enter');
    await untilTitled('Test pro');
    await patch(id, { plan: 'free', externalId: 'of-another-operator' });
    await use('Change');
    await page.tabTo('Monthly limit (empty: that of the plan)');
    await page.type('50');
    await page.press('Enter');
    await untilDone('Changed.');
    const limited = { plan: 'free', monthlyLimit: 50, externalId: 'of-another-operator' };
    expect(await admin(`/organizations/${id}`)).toMatchObject(limited);

    await patch(id, { monthlyLimit: 60 });
    await use('Change');
    await page.tabTo(EXTERNAL_ID);
    await page.press('Backspace');
    await page.press('Enter');
    await untilDone('Changed.');
    expect(await admin(`/organizations/${id}`)).toMatchObject({ plan: 'free', monthlyLimit: 60, externalId: null });
    await use('Change');
    await page.press('Enter');
    await use('Change');
    await until(async () => (await page.text()).includes('The body must contain plan, monthlyLimit or externalId.'));
  });

  it('shows the organizations for a URL that names no page', async () => {
    await signIn();
    for (const [hash, title] of [
      ['constructor', 'Organizations'],
      ['__proto__', 'Organizations'],
      ['none', 'Organizations'],
      ['toString/x', 'Not shown'],
      ['none/x', 'Not shown'],
    ] as const) {
      await page.evaluate('location.hash = "audit"');
      await untilTitled('Audit');
      await page.evaluate(`location.hash = "${hash}"`);
      await untilTitled(title);
    }
  });

  it('isolates the direction of a name from the words around it', async () => {
    const named = async (name: string): Promise<unknown> =>
      page.evaluate(
        `quoted(${JSON.stringify(name)}).replace(/[\u2066-\u2069]/g, (mark) => mark === '\u2068' ? '(' : ')')`,
      );
    expect(await named('\u202eevil\u2069” \u2067x\u2029y')).toBe('“(\u202eevil” xy)”');
  });

  it('shows usage, keys, jobs, subscriptions and changes of an organization, rotates a key and cancels a job', async () => {
    await openOrganization();
    expect(await page.accessible('meter')).toEqual(['meter Used this month: 3 of 40']);
    expect(await page.accessible('image')).toEqual([
      expect.stringMatching(/^image (\d{4}-\d{2}: 0, ){5}\d{4}-\d{2}: 3$/),
    ]);
    const text = await page.text();
    for (const shown of [
      '@tidewater',
      '2 videos',
      '7 videos, 3 of 2,048 MB',
      'queued',
      'Harbour Light Workshop',
      'paused: upstream_blocked',
      'active',
      'key ctk_',
    ])
      expect(text).toContain(shown);

    await use('Rotate');
    await page.press('Enter');
    await page.untilShown('Store the key now');
    const key = await page.evaluate<string>('document.querySelector("#new-key").value');
    await use('I have stored it');
    await untilDone('Rotated');
    expect((await service.get('/usage', key)).status).toBe(200);
    expect(await page.text()).toContain('replaced');

    await use('Cancel');
    expect(await page.focused()).toBe('Back');
    await use('Cancel the job');
    await untilDone('Canceled.');
    expect((await admin(`/organizations/${organization.id}/jobs`)).jobs).toMatchObject([
      { id: jobId, state: 'canceled' },
      { state: 'queued' },
    ]);
    expect(await page.text()).toContain('job.canceled');
  });

  it('blocks a client of the identity provider, and unblocks it', async () => {
    const { id } = await service.organization();
    await service.query(
      `INSERT INTO api_keys (id, organization_id, name, kind, client)
         VALUES ('key_of_client', '${id}', 'nightly-import', 'oidc', 'nightly-import')`,
    );
    await service.query(`UPDATE organizations SET external_id = 'acme' WHERE id = '${id}'`);
    const client = async (): Promise<unknown> => (await admin(`/organizations/${id}/keys`)).keys.at(-1);
    await signIn();
    await untilTitled('Organizations');
    await page.tabTo('Name or ID');
    await page.type(id);
    await page.press('Enter');
    await untilTitled('Test pro');
    for (const shown of ['client nightly-import', 'acme']) expect(await page.text()).toContain(shown);
    await use('Block');
    expect(await page.focused()).toBe('Back');
    await use('Block');
    await untilDone('Blocked');
    expect(await client()).toMatchObject({ id: 'key_of_client', kind: 'oidc', revokedAt: expect.any(String) });
    await use('Unblock');
    await use('Unblock');
    await untilDone('Unblocked');
    expect(await client()).toMatchObject({ id: 'key_of_client', revokedAt: null });
  });

  it('shows the egresses and the audit, and an error in words', async () => {
    await signIn();
    await untilTitled('Organizations');
    await use('Egresses');
    await untilTitled('Egresses');
    expect(await page.text()).toMatch(/direct[^]*channel: open[^]*video: open[^]*player unlimited/);
    await use('Audit');
    await untilTitled('Audit');
    await page.untilShown('key.issued');
    await page.resize(1000, 900);
    expect(await page.evaluate(brokenWords())).toEqual([]);
    await use(String((await admin('/audit')).entries[0].organizationId));
    await untilTitled('Test pro');
    await page.evaluate('location.hash = "organizations/org_none"');
    await untilTitled('Not shown');
    expect(await page.accessible('alert')).toEqual(['alert ']);
    expect(await page.text()).toContain('No organization has the ID or name "org_none".');
    await service.request(
      'POST',
      '/admin/organizations',
      { ...TOKEN, 'Content-Type': 'application/json' },
      '{"name":"A","plan":"pro"}',
    );
    await use('Organizations');
    await untilTitled('Organizations');
    await use('Create an organization');
    await page.type(' ');
    await page.press('Enter');
    await until(
      async () => (await page.evaluate<string>('document.querySelector("dialog .failure").textContent')) !== '',
    );
    await page.press('Escape');
    expect(await page.evaluate('document.querySelector("dialog").open')).toBe(false);
  });

  it('names every control, and fits a narrow screen in both color schemes', async () => {
    await openOrganization();
    await page.resize(360, 800);
    for (const value of ['light', 'dark']) {
      await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
      const [width, background] = await page.evaluate<[number, string]>(
        '[document.documentElement.scrollWidth, getComputedStyle(document.body).color]',
      );
      expect([width, background]).toEqual([360, value === 'light' ? 'rgb(0, 0, 0)' : 'rgb(255, 255, 255)']);
    }
    expect(await page.evaluate('document.querySelectorAll("time").length')).toBeGreaterThan(15);
    expect(await page.evaluate(brokenWords('time'))).toEqual([]);
    expect(await page.text()).not.toMatch(/\d{4}-\d\d-\d\dT/);
    const controls = await page.accessible('button', 'link', 'textbox', 'spinbutton', 'combobox', 'table', 'dialog');
    expect(controls.length).toBeGreaterThan(10);
    expect(controls.filter((control) => control.endsWith(' '))).toEqual([]);
    expect(await page.accessible('cell')).not.toEqual([]);
  });

  it('runs no script but its own', async () => {
    const inject =
      'const s = document.createElement("script"); s.append("document.title = 1"); document.body.append(s);';
    await page.evaluate(inject);
    await page.evaluate('try { document.body.innerHTML += "<b>x</b>" } catch { document.title += ", refused" }');
    await until(() => page.problems.length > 0);
    expect(page.problems.splice(0).join()).toMatch(/TrustedScript/);
    expect(await page.evaluate('document.title')).toBe('Channel Transcripts: operator, refused');
  });
});
