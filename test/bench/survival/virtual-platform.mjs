import { createRequire } from 'node:module';
import { Budgets } from '../../../dist-tools/test/fake-youtube/budgets.js';
import { refusalResponse } from '../../../dist-tools/test/fake-youtube/calls/player.js';
import { PoTokens } from '../../../dist-tools/test/fake-youtube/calls/po-token.js';
import { REFUSING_PLAYABILITIES } from '../../../dist-tools/test/fake-youtube/faults/refusals.js';
import { readIncoming } from '../../../dist-tools/test/fake-youtube/incoming-request.js';
import { CurrentCatalogue } from '../../../dist-tools/test/fake-youtube/publish/current-catalogue.js';
import { RenderedBodies } from '../../../dist-tools/test/fake-youtube/rendered-bodies.js';
import { respond } from '../../../dist-tools/test/fake-youtube/respond.js';
import { settingsOf } from '../../../dist-tools/test/fake-youtube/settings.js';
import { Visitors } from '../../../dist-tools/test/fake-youtube/visitors.js';

const LATENCY_MS = 150;

/** The fake YouTube without a server: requests of the undici in this process reach it directly. */
export class VirtualPlatform {
  /** Requests by kind, and those that the budgets refused. */
  counts = { player: 0, timedtext: 0, other: 0, refused: 0 };
  #time;
  #state;
  #bodies = new RenderedBodies();
  #budgets = new Budgets(() => Date.now());
  #addresses = 0;

  constructor(time, budgets) {
    const settings = settingsOf({ budgets });
    this.#time = time;
    this.#state = { settings, visitors: new Visitors(), tokens: new PoTokens(), catalogue: new CurrentCatalogue() };
  }

  /** The response to one request, after the latency of the platform. */
  async exchange({ method, path, headers, body, egress }) {
    const state = this.#state;
    await this.#time.wait(LATENCY_MS);
    const incoming = readIncoming(method, path, headers, body, egress);
    const use = incoming.kind === 'reel' ? 'player' : incoming.kind;
    this.counts[use in this.counts ? use : 'other'] += 1;
    const refused = this.#budgets.refuse(state.settings.budgets, incoming);
    if (refused) this.counts.refused += 1;
    if (refused === '429') return { status: 429, contentType: 'text/html', bytes: Buffer.from('Too many requests.') };
    if (refused) {
      const refusal = refusalResponse(REFUSING_PLAYABILITIES['bot-check-renewed'], incoming, state);
      const bytes = Buffer.from(JSON.stringify(refusal));
      return { status: 200, contentType: 'application/json; charset=UTF-8', bytes };
    }
    return this.#bodies.write(respond(incoming, state), incoming.fields, false);
  }

  /** The address that the platform sees behind a proxy: one for each host or session, a new one without a session. */
  addressBehind(proxyUrl) {
    const { hostname, username } = new URL(proxyUrl);
    const session = /-session-(.*)$/.exec(username)?.[1];
    if (hostname !== 'gateway') return () => hostname;
    return session === undefined ? () => `gateway ${(this.#addresses += 1)}` : () => `gateway ${session}`;
  }

  /** Replaces the agent of the undici that the service imports; to be called before the service is imported. */
  replaceAgent() {
    const exchange = (request) => this.exchange(request);
    const addressBehind = (proxyUrl) => this.addressBehind(proxyUrl);
    createRequire(import.meta.url)('undici').ProxyAgent = class {
      #address;

      constructor({ uri }) {
        this.#address = addressBehind(uri);
      }

      dispatch({ method, path, headers, body }, handler) {
        let aborted = false;
        const fail = (reason) => {
          if (aborted) return;
          aborted = true;
          handler.onError(reason ?? new Error('aborted'));
        };
        handler.onConnect(fail);
        void exchange({ method, path, headers, body: body ?? '', egress: this.#address() }).then(
          ({ status, contentType, bytes }) => {
            if (aborted) return;
            const head = ['content-type', contentType, 'content-length', String(bytes.length)];
            handler.onHeaders(
              status,
              head.map((text) => Buffer.from(text)),
              () => undefined,
              '',
            );
            handler.onData(bytes);
            handler.onComplete([]);
          },
          fail,
        );
        return true;
      }

      async destroy() {}
    };
  }
}
