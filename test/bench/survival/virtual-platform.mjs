import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PROJECT } from '../processes.mjs';

const FAKE = join(PROJECT, 'dist-tools/test/fake-youtube');
const LATENCY_MS = 150;

/** The fake YouTube without a server: requests of the undici in this process reach it directly. */
export class VirtualPlatform {
  /** Requests by kind, and those that the budgets refused. */
  counts = { player: 0, timedtext: 0, other: 0, refused: 0 };
  #time;
  #fake;
  #addresses = 0;

  static async open(time, budgets) {
    const load = (file) => import(join(FAKE, file));
    const { settingsOf } = await load('settings.js');
    const { Budgets } = await load('budgets.js');
    const { Visitors } = await load('visitors.js');
    const { PoTokens } = await load('calls/po-token.js');
    const { readIncoming } = await load('incoming-request.js');
    const { respond } = await load('respond.js');
    const { RenderedBodies } = await load('rendered-bodies.js');
    const { refusalResponse } = await load('calls/player.js');
    const { REFUSING_PLAYABILITIES } = await load('faults/refusals.js');
    const settings = settingsOf({ budgets });
    const state = { settings, visitors: new Visitors(), tokens: new PoTokens() };
    const refusal = (incoming) => refusalResponse(REFUSING_PLAYABILITIES['bot-check-renewed'], incoming, state);
    return new VirtualPlatform(time, {
      ...{ state, readIncoming, respond, refusal },
      ...{ bodies: new RenderedBodies(), budgets: new Budgets(() => Date.now()) },
    });
  }

  constructor(time, fake) {
    this.#time = time;
    this.#fake = fake;
  }

  /** The response to one request, after the latency of the platform. */
  async exchange({ method, path, headers, body, egress }) {
    const { state, readIncoming, respond, refusal, bodies, budgets } = this.#fake;
    await this.#time.wait(LATENCY_MS);
    const incoming = readIncoming(method, path, headers, body, egress);
    const use = incoming.kind === 'reel' ? 'player' : incoming.kind;
    this.counts[use in this.counts ? use : 'other'] += 1;
    const refused = budgets.refuse(state.settings.budgets, incoming);
    if (refused) this.counts.refused += 1;
    if (refused === '429') return { status: 429, contentType: 'text/html', bytes: Buffer.from('Too many requests.') };
    if (refused) {
      const bytes = Buffer.from(JSON.stringify(refusal(incoming)));
      return { status: 200, contentType: 'application/json; charset=UTF-8', bytes };
    }
    return bodies.write(respond(incoming, state), incoming.fields, false);
  }

  /** The address that the platform sees behind a proxy: one for each host or session, a new one without a session. */
  addressBehind(proxyUrl) {
    const { hostname, username } = new URL(proxyUrl);
    const session = /-session-(.*)$/.exec(username)?.[1];
    if (hostname !== 'gateway') return () => hostname;
    return session === undefined ? () => `gateway ${(this.#addresses += 1)}` : () => `gateway ${session}`;
  }

  /** Replaces the agents of the undici that the service imports; to be called before the service is imported. */
  replaceAgents() {
    const undici = createRequire(join(PROJECT, 'package.json'))('undici');
    const exchange = (request) => {
      this.#time.activity += 1;
      return this.exchange(request);
    };
    const addressBehind = (proxyUrl) => this.addressBehind(proxyUrl);
    class VirtualAgent extends undici.Dispatcher {
      constructor(address) {
        super();
        this.address = address;
      }

      dispatch({ method, path, query, headers, body }, handler) {
        let aborted = false;
        const fail = (reason) => {
          if (aborted) return;
          aborted = true;
          handler.onError(reason ?? new Error('aborted'));
        };
        handler.onConnect(fail);
        if (aborted) return true;
        if (query) throw new Error('The virtual agent reads no query by itself');
        const request = { method, path, headers: lowerCased(headers), body: body ?? '', egress: this.address() };
        void exchange(request).then(({ status, contentType, bytes }) => {
          if (aborted) return;
          const raw = ['content-type', contentType, 'content-length', String(bytes.length)];
          handler.onHeaders(
            status,
            raw.map((text) => Buffer.from(text)),
            () => undefined,
            '',
          );
          handler.onData(bytes);
          handler.onComplete([]);
        }, fail);
        return true;
      }

      destroy() {
        return Promise.resolve();
      }

      close() {
        return Promise.resolve();
      }
    }
    undici.Agent = class extends VirtualAgent {
      constructor() {
        super(() => 'direct');
      }
    };
    undici.ProxyAgent = class extends VirtualAgent {
      constructor(options) {
        super(addressBehind(typeof options === 'string' ? options : String(options.uri)));
      }
    };
  }
}

function lowerCased(headers) {
  const entries = Array.isArray(headers) ? pairs(headers) : Object.entries(headers ?? {});
  return Object.fromEntries(entries.map(([name, value]) => [String(name).toLowerCase(), value]));
}

function pairs(list) {
  return list.flatMap((name, index) => (index % 2 === 0 ? [[name, list[index + 1]]] : []));
}
