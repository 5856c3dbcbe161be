import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Chromium, chromiumIsInstalled, type ChromiumPage } from '../harness/chromium.js';
import { send } from '../harness/http-request.js';
import { startService, type TestOrganization, type TestService } from '../harness/service.js';
import { until } from '../harness/until.js';
import { createJob, waitForJob } from '../jobs/job-requests.js';
import { Program } from '../process/program.js';
import { follow, onSubscriptions } from '../subscriptions/subscription-requests.js';
import { libraryVideos, search } from './library-requests.js';

/** What the page gets of the service waits until it is released. */
const HOLD = `
  const held = [];
  const send = fetch;
  fetch = async (...request) => {
    const response = await send(...request);
    await new Promise((resolve, reject) => held.push({ resolve, reject }));
    return response;
  };`;
const RELEASE = 'fetch = send; for (const { resolve } of held) resolve();';
const HOSTILE = '<img src=x onerror="document.title=1"><script>alert(1)</script>';

let service: TestService;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

describe('the page of the library', () => {
  it('is served without data and without a key, with a policy of its own', async () => {
    const { status, headers, text } = await service.request('GET', '/library/ui');
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      200,
      'text/html; charset=utf-8',
      'private, no-store',
    ]);
    const policy = String(headers['content-security-policy']);
    expect(policy).toMatch(/^default-src 'none';.*frame-ancestors 'none'.*connect-src 'self'/);
    expect(policy).toMatch(/script-src( 'sha256-[^ ;]+'){2};style-src 'sha256-[^ ;]+';/);
    expect(policy).not.toMatch(/unsafe|nonce|\*/);
    expect(text).not.toMatch(/ on[a-z]+=| style=|https?:\/\/|innerHTML|localStorage|sessionStorage/);
    expect((await service.request('HEAD', '/library/ui')).status).toBe(200);
    expect((await service.request('POST', '/library/ui')).status).toBe(405);
  });

  it('is in the built program', async () => {
    const program = Program.run('main.js', {
      ...{ DATABASE_URL: service.databaseUrl, YOUTUBE_BASE_URL: service.fakeYoutube.url },
    });
    try {
      const response = await send(await program.url(), 'GET', '/library/ui');
      expect([response.status, response.text]).toEqual([200, (await service.request('GET', '/library/ui')).text]);
    } finally {
      await program.stop();
    }
  });
});

(chromiumIsInstalled ? describe : describe.skip)('the page of the library in Chromium', () => {
  let chromium: Chromium;
  let page: ChromiumPage;
  let organization: TestOrganization;
  /** Keeps more passages than a page shows. */
  let collector: TestOrganization;

  beforeAll(async () => {
    chromium = Chromium.start();
    organization = await service.organization();
    const { key } = organization;
    service.fakeYoutube.publish({ channel: '@tidewater', title: HOSTILE });
    const { id } = await follow(service, key, { channel: '@tidewater', start: 3, labels: { user: '42' } });
    await until(async () => {
      const { summary } = (await onSubscriptions(service, key, 'GET', `/${id}`)).body as {
        summary: { succeeded: number };
      };
      return summary.succeeded === 3;
    });
    for (const body of [
      { channel: '@tidewater' },
      { videos: ['hl-keeper__', 'hl-pearl___', 'hl-foghorn_'], languages: ['de', '*'] },
    ])
      await waitForJob(service, key, await createJob(service, key, { ...body, keep: true }));
    collector = await service.organization();
    service.fakeYoutube.publish({ channel: '@tidewater', count: 30 });
    const job = await createJob(service, collector.key, { channel: '@tidewater', keep: true });
    await waitForJob(service, collector.key, job);
  });
  afterAll(() => chromium.close());
  beforeEach(async () => {
    page = await chromium.open();
    await page.resize(1000, 900);
    await page.open(`${service.url}/library/ui`);
  });
  afterEach(async () => {
    const { problems, requests } = page;
    const stored = await page.evaluate<string>(
      'JSON.stringify([location.href, document.cookie, { ...localStorage }, { ...sessionStorage }])',
    );
    const title = await page.evaluate('document.title');
    await page.close();
    expect(problems).toEqual([]);
    expect(title).toBe('Channel Transcripts: library');
    expect(requests.filter((url) => !url.startsWith(service.url) && !url.startsWith('data:'))).toEqual([]);
    expect([stored, ...requests].join('\n')).not.toContain(organization.key);
  });

  async function signIn(key = organization.key): Promise<void> {
    await until(async () => (await page.focused()) === 'API key');
    await page.type(key);
    await page.press('Enter');
  }

  async function use(name: string): Promise<void> {
    await page.tabTo(name);
    await page.press('Enter');
  }

  const untilTitled = (name: string): Promise<void> =>
    until(() => page.evaluate<boolean>(`document.querySelector('main h2')?.textContent === ${JSON.stringify(name)}`));
  const untilSearching = (): Promise<void> =>
    until(() => page.evaluate<boolean>('document.activeElement?.name === "q"'));
  const marks = (): Promise<string[]> =>
    page.evaluate('[...document.querySelectorAll("mark")].map(({ textContent }) => textContent)');
  const untilHeld = (count: number): Promise<void> => until(() => page.evaluate<boolean>(`held.length === ${count}`));
  const press = (name: string): Promise<void> =>
    page.evaluate(`[...document.querySelectorAll('button')].find((one) => one.textContent === '${name}').click()`);
  const problem = (): Promise<string> => page.evaluate('document.querySelector("#failure").textContent');
  const links = (): Promise<string[]> =>
    page.evaluate('[...document.querySelectorAll("main a")].map(({ href }) => href)');

  it('says why a key was refused, and shows nothing', async () => {
    await signIn('wrong');
    await page.untilShown('API key');
    await until(async () => (await page.evaluate<string>('document.querySelector("#failure").textContent')) !== '');
    expect(await page.accessible('alert')).not.toEqual([]);
    expect(await page.evaluate('document.querySelector("main").childElementCount')).toBe(0);
    await signIn();
    await untilSearching();
    await use('Sign out');
    await until(async () => (await page.focused()) === 'API key');
    expect(await page.evaluate('document.querySelector("input").value')).toBe('');
  });

  it('finds passages with their words marked and a link to the second, page by page, and says an error in words', async () => {
    await signIn();
    await untilSearching();
    await page.type('"lampe bei dammerung"');
    await page.press('Enter');
    await page.untilShown('1 passage.');
    expect(await marks()).toEqual(['Lampe bei Dämmerung']);
    const { results } = await search(service, organization.key, '"lampe bei dammerung"');
    expect(await links()).toEqual(results.map(({ url }) => url));
    await page.evaluate('document.querySelector("[name=q]").value = ""; document.querySelector("[name=q]").focus()');
    await page.type('-lampe');
    await page.press('Enter');
    await page.untilShown('q must have a word to search for');
    await page.evaluate('document.querySelector("[name=q]").value = ""; document.querySelector("[name=q]").focus()');
    await page.type('no such words');
    await page.press('Enter');
    await page.untilShown('Nothing was found.');
  });

  it('filters by channel, language and date', async () => {
    await signIn();
    await untilSearching();
    await page.type('the');
    await page.tabTo('Channel');
    await page.type('@tidewater');
    await page.press('Enter');
    const { total } = await search(service, organization.key, 'the', '&channel=@tidewater');
    await page.untilShown(`${total} passages.`);
    await page.tabTo('Language');
    await page.type('de');
    await page.press('Enter');
    await page.untilShown('Nothing was found.');
  });

  it('shows what is new, whatever a title is, and keeps, and deletes a video after it has asked', async () => {
    await signIn();
    await untilSearching();
    await use('New');
    await untilTitled('New uploads of subscriptions');
    expect(await page.text()).toContain(HOSTILE);
    expect(await page.evaluate('document.querySelectorAll("main img, main script").length')).toBe(0);
    await use('Kept');
    await untilTitled('Kept');
    const { videos } = await libraryVideos(service, organization.key);
    expect(await page.accessible('meter')).toEqual([`meter Size: ${videos.length} videos, 1 of 2,048 megabytes`]);
    expect(await links()).toEqual(videos.map(({ url }) => url));
    await use('Delete');
    expect(await page.focused()).toBe('Back');
    await use('Delete the texts');
    await page.untilShown('Deleted from the library.');
    expect((await libraryVideos(service, organization.key)).videos).toEqual(videos.slice(1));
  });

  it('shows an entry once, however often New is opened while it loads', async () => {
    await signIn();
    await untilSearching();
    await page.evaluate(HOLD);
    await use('New');
    await untilHeld(1);
    await page.evaluate('location.hash = "search"');
    await untilSearching();
    await use('New');
    await untilHeld(2);
    await page.evaluate(RELEASE);
    await untilTitled('New uploads of subscriptions');
    const shown = await links();
    expect(shown).toHaveLength(3);
    expect(new Set(shown).size).toBe(3);
  });

  it('shows a key nothing that loaded for the key before it', async () => {
    await signIn();
    await untilSearching();
    await page.evaluate(HOLD);
    await use('New');
    await untilHeld(1);
    await use('Sign out');
    await page.evaluate('fetch = send');
    await signIn((await service.organization()).key);
    await untilTitled('New uploads of subscriptions');
    await page.evaluate(RELEASE);
    await page.evaluate('location.hash = "search"');
    await untilSearching();
    await use('New');
    await untilTitled('New uploads of subscriptions');
    expect(await links()).toEqual([]);
  });

  it('shows the search for a URL that names no page', async () => {
    await signIn();
    await untilSearching();
    await use('New');
    await untilTitled('New uploads of subscriptions');
    await page.evaluate('location.hash = "constructor"');
    await untilSearching();
  });

  it('stays signed in with the second key when the first one is refused later', async () => {
    await until(async () => (await page.focused()) === 'API key');
    await page.evaluate(HOLD);
    await signIn('wrong');
    await untilHeld(1);
    await page.evaluate('document.querySelector("#sign-in input").select()');
    await signIn();
    await untilHeld(2);
    await page.evaluate(RELEASE);
    await untilSearching();
    expect([await problem(), await page.evaluate('document.querySelector("#sign-in").hidden')]).toEqual(['', true]);
  });

  it('loads a page once, however often More is pressed, and tries again after an error', async () => {
    const first = await search(service, collector.key, 'th*');
    const second = await search(service, collector.key, 'th*', `&after=${first.next}`);
    expect(second.results).not.toEqual([]);
    const all = [...first.results, ...second.results].map(({ url }) => url);
    await signIn(collector.key);
    await untilSearching();
    await page.type('th*');
    await page.press('Enter');
    await page.untilShown(`${first.total} passages.`);
    expect(await links()).toEqual(all.slice(0, first.results.length));
    await page.evaluate(HOLD);
    await press('More');
    await press('More');
    await untilHeld(1);
    await page.evaluate('held.pop().reject(new Error("no answer"))');
    await until(async () => (await problem()) !== '');
    expect(await page.focused()).toBe('More');
    await press('More');
    await press('More');
    await untilHeld(1);
    await page.evaluate(RELEASE);
    await until(async () => (await problem()) === '');
    expect(await links()).toEqual(all);
    expect(await page.text()).toContain(`${first.total} passages.`);
    expect(await page.evaluate('document.activeElement.querySelector("a").href')).toBe(second.results[0]?.url);
  });

  it('shows no error of a view that was left', async () => {
    await signIn(collector.key);
    await untilSearching();
    await page.type('th*');
    await page.press('Enter');
    await page.untilShown('passages.');
    await page.evaluate(HOLD);
    await press('More');
    await untilHeld(1);
    await page.evaluate('fetch = send');
    await use('Kept');
    await untilTitled('Kept');
    await page.evaluate('held.pop().reject(new Error("no answer"))');
    expect(await problem()).toBe('');
  });

  it('deletes the texts of one video while the next one is asked about', async () => {
    await signIn();
    await untilSearching();
    await use('Kept');
    await untilTitled('Kept');
    const { videos } = await libraryVideos(service, organization.key);
    await page.evaluate(HOLD);
    await use('Delete');
    await use('Delete the texts');
    await untilHeld(1);
    await page.press('Escape');
    await until(() =>
      page.evaluate<boolean>('!document.querySelector("dialog").open && !document.querySelector("dialog *")'),
    );
    await page.evaluate('[...document.querySelectorAll("main .danger")][1].click()');
    await page.evaluate(RELEASE);
    await page.untilShown('Deleted from the library.');
    expect(await page.evaluate('document.querySelector("dialog [dir]").textContent')).toBe(videos[1]?.title);
    expect((await libraryVideos(service, organization.key)).videos).toEqual(videos.slice(1));
  });

  it('names every control, and fits a narrow screen in both color schemes', async () => {
    await signIn();
    await untilSearching();
    await page.type('die');
    await page.press('Enter');
    await page.untilShown('passage');
    await page.resize(360, 800);
    for (const value of ['light', 'dark']) {
      await page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] });
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
    }
    expect(
      (await page.accessible('button', 'link', 'textbox', 'searchbox', 'combobox')).filter(
        (name) => !name.includes(' '),
      ),
    ).toEqual([]);
  });
});
