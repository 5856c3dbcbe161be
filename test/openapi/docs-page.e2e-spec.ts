import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Browser, browserInstalled, Page } from './browser.js';
import { startService, type TestService } from '../service.js';
import { until } from '../until.js';

const LOADED_MS = 20_000;

// Skipped without a browser; continuous integration installs one.
(browserInstalled ? describe : describe.skip)('the page at /docs in a browser', () => {
  let service: TestService;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    [service, browser] = await Promise.all([startService(), Browser.start()]);
    page = await Page.open(browser, `${service.url}/docs`);
    await until(async () => (await page.evaluate(`document.querySelectorAll('.opblock').length`)) !== 0, LOADED_MS);
  });
  afterAll(async () => {
    await browser.close();
    await service.close();
  });

  /** Waits for an element that matches the selector, and the text if given, and clicks the first one. */
  async function press(selector: string, text = ''): Promise<void> {
    const button = `[...document.querySelectorAll(${JSON.stringify(selector)})].find((one) => one.textContent.includes(${JSON.stringify(text)}))`;
    await until(async () => (await page.evaluate(`${button} !== undefined`)) === true);
    await page.evaluate(`${button}.click()`);
  }

  it('shows every operation and a way to authorize', async () => {
    const shown = (await page.evaluate(
      `[...document.querySelectorAll('[data-path]')].map((one) => one.dataset.path)`,
    )) as string[];
    const { paths } = (await service.request('GET', '/docs-json')).body as { paths: Record<string, object> };
    const described = Object.entries(paths).flatMap(([path, methods]) => Object.keys(methods).map(() => path));
    expect(shown.sort()).toEqual(described.sort());
    expect(await page.evaluate(`document.querySelector('.authorize').textContent`)).toBe('Authorize');
  });

  it('accepts a key, makes the call, shows its response, stores nothing, and violates no content security policy', async () => {
    const { key } = await service.organization();
    await press('.authorize');
    await until(async () => (await page.evaluate(`document.querySelector('.auth-container input') !== null`)) === true);
    await page.type('.auth-container input', key);
    await press('.auth-btn-wrapper button', 'Authorize');
    await press('.btn-done', 'Close');
    const operation = '#operations-channels-getChannelTranscripts';
    await press(`${operation} .opblock-summary-control`);
    // The page fills the fields with their examples when it renders them.
    await until(
      async () => (await page.evaluate(`document.querySelector('${operation} input')?.value`)) === '@harbourlight',
    );
    await press(`${operation} .execute`);
    await until(
      async () =>
        (await page.evaluate(`document.querySelector('${operation} .live-responses-table') !== null`)) === true,
      LOADED_MS,
    );
    const response = String(
      await page.evaluate(`document.querySelector('${operation} .live-responses-table').textContent`),
    );
    expect(response).toMatch(/^.*200.*"Harbour Light Workshop"/s);
    expect(await page.evaluate('JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage)])')).toBe(
      '[[],[]]',
    );
    expect(page.console).toEqual([]);
  });

  // The last test: its violations are on the console of the page.
  it('runs only scripts that the service itself serves', async () => {
    await page.evaluate(
      `document.body.insertAdjacentHTML('beforeend', '<img src="x:" onerror="window.ran = true">');
       document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.ran = true' }));`,
    );
    await until(() => page.console.filter((line) => line.includes('Content Security Policy')).length >= 3);
    expect(await page.evaluate('window.ran')).toBeUndefined();
    await expect(page.evaluate(`new Promise((run) => eval('run(1)'))`)).rejects.toThrow('EvalError');
  });
});
