import type { ClientFields } from '../../../config/client-overrides.js';
import { YOUTUBE_CLIENTS, type YoutubeClient } from '../../../config/environment.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import { isObject, UnreadableError } from '../response-parsing.js';
import type { OutgoingRequest } from '../egress/http-transport.js';

/** The common part of all requests of one client. */
interface ClientTemplate {
  headers: Readonly<Record<string, string>>;
  context: Readonly<Record<string, unknown>>;
  /** `context.client`, without the visitor data. */
  client: Readonly<Record<string, unknown>>;
}

/** Composes InnerTube requests the way youtubei.js does. */
export interface InnertubeRequestTemplates {
  /**
   * @param path below `/youtubei/v1/`
   * @param visitorData null sends none
   * @param fields a `$fields` mask, or null for the complete response
   */
  compose(
    client: YoutubeClient,
    path: string,
    payload: Readonly<Record<string, unknown>>,
    visitorData: string | null,
    fields: string | null,
  ): OutgoingRequest;
  /** The user agent with which a client fetches the URLs in its responses. */
  userAgent(client: YoutubeClient): string;
  /** The same with other values for some clients. */
  withOverrides(overrides: ReadonlyMap<YoutubeClient, ClientFields>): InnertubeRequestTemplates;
}

/**
 * Each client by its name in youtubei.js, and values that are newer than those of its version 18.1.0. Old versions are
 * answered with 400 or an error, so the newest known value is the best.
 */
const CLIENTS: Readonly<Record<YoutubeClient, { base: string; newer: ClientFields & { clientName?: string } }>> = {
  // In use elsewhere in September 2026 (public issues).
  WEB: { base: 'WEB', newer: { clientVersion: '2.20260805.01.00' } },
  // 1.02 as in youtubei.js: recorded in June 2026 and still served in September. 1.04 is known, but not recorded.
  VISIONOS: { base: 'VISIONOS', newer: {} },
  // In use elsewhere for `player` in September 2026, where it plays videos made for kids (public issues).
  ANDROID: {
    base: 'ANDROID',
    newer: {
      clientVersion: '21.26.364',
      userAgent: 'com.google.android.youtube/21.26.364 (Linux; U; Android 11) gzip',
      osVersion: '11',
      androidSdkVersion: 30,
    },
  },
  // In use elsewhere in September 2026 (public issues). The platform's own name is in capitals.
  IOS: {
    base: 'IOS',
    newer: {
      clientName: 'IOS',
      clientVersion: '21.26.4',
      userAgent: 'com.google.ios.youtube/21.26.4 (iPhone16,2; U; CPU iOS 18_3_2 like Mac OS X;)',
      deviceModel: 'iPhone16,2',
      osVersion: '18.3.2.22D82',
    },
  },
  // 21.03.36 as in youtubei.js: recorded with the reel endpoint in June 2026.
  ANDROID_REEL: { base: 'ANDROID', newer: {} },
  // 1.65.10 as in youtubei.js: the newest known in September 2026.
  ANDROID_VR: { base: 'ANDROID_VR', newer: {} },
};

let loading: Promise<InnertubeRequestTemplates> | null = null;

/** Loads youtubei.js on first use: its import takes 0.1 to 0.2 s and 11 MB, which the CLI commands avoid. */
export function loadRequestTemplates(): Promise<InnertubeRequestTemplates> {
  loading ??= load().catch((error: unknown) => {
    loading = null;
    throw error;
  });
  return loading;
}

/*
 * youtubei.js knows the clients' versions, contexts and headers, and its `execute()` composes them, but this adapter sends
 * the requests: youtubei.js accepts no AbortSignal, hides the status of a refusal, clones the context for each call and
 * parses each body twice. So `execute()` composes each client's request once, a custom `fetch` captures it, and later
 * requests replace only payload and visitor data (youtubei.js 18.1.0, HTTPClient.js and Actions.js).
 */
async function load(): Promise<InnertubeRequestTemplates> {
  // Its Node.js entry loads a thousand modules, which takes five times as long. The bundle composes the same requests once it
  // knows that it runs on a server: in a browser, `user-agent` and `origin` would be the browser's to set.
  const { Innertube, Platform } = await import('youtubei.js/web.bundle');
  Platform.load({ ...Platform.shim, server: true });
  let captured: CapturedRequest | null = null;
  const innertube = await Innertube.create({
    lang: 'en',
    location: 'US',
    timezone: 'UTC',
    generate_session_locally: true,
    retrieve_player: false,
    retrieve_innertube_config: false,
    enable_session_cache: false,
    fetch: (_input, init) => {
      captured = { headers: Object.fromEntries(new Headers(init?.headers)), body: init?.body };
      return Promise.resolve(new Response('{}', { headers: { 'content-type': 'application/json' } }));
    },
  });
  const templates = new Map<YoutubeClient, ClientTemplate>();
  for (const name of YOUTUBE_CLIENTS) {
    const { base, newer } = CLIENTS[name];
    await innertube.session.actions.execute('/player', { client: base, parse: false });
    templates.set(name, withFields(readTemplate(captured), newer));
  }
  return composer(templates);
}

interface CapturedRequest {
  headers: Record<string, string>;
  body: unknown;
}

function readTemplate(captured: CapturedRequest | null): ClientTemplate {
  const body: unknown = typeof captured?.body === 'string' ? JSON.parse(captured.body) : null;
  const context = isObject(body) && isObject(body['context']) ? body['context'] : null;
  const client = context && isObject(context['client']) ? { ...context['client'] } : null;
  if (!captured || !context || !client) throw new UnreadableError('a request context from youtubei.js');
  delete client['visitorData'];
  const headers = { ...captured.headers };
  delete headers['x-goog-visitor-id'];
  return { headers, context, client };
}

/** Replaces fields of a client, and the headers that have the same values. */
function withFields(template: ClientTemplate, fields: ClientFields): ClientTemplate {
  const { clientVersion, userAgent } = fields;
  return {
    ...template,
    client: { ...template.client, ...fields },
    headers: {
      ...template.headers,
      ...(clientVersion !== undefined && { 'x-youtube-client-version': clientVersion }),
      ...(userAgent !== undefined && { 'user-agent': userAgent }),
    },
  };
}

function composer(templates: ReadonlyMap<YoutubeClient, ClientTemplate>): InnertubeRequestTemplates {
  const template = (client: YoutubeClient): ClientTemplate => {
    const found = templates.get(client);
    if (!found) throw new UnreadableError(`a request context for ${client} from youtubei.js`);
    return found;
  };
  return {
    compose(client, path, payload, visitorData, fields) {
      const { headers, context, client: clientContext } = template(client);
      const url = new URL(`/youtubei/v1/${path}?prettyPrint=false&alt=json`, YOUTUBE_ORIGIN);
      if (fields !== null) url.searchParams.set('$fields', fields);
      const visitor = visitorData === null ? {} : { visitorData };
      const body = { ...payload, context: { ...context, client: { ...clientContext, ...visitor } } };
      const visitorHeader = visitorData === null ? {} : { 'x-goog-visitor-id': visitorData };
      return { url, headers: { ...headers, ...visitorHeader }, body: JSON.stringify(body) };
    },
    userAgent: (client) => template(client).headers['user-agent'] ?? '',
    withOverrides(overrides) {
      const overridden = [...templates].map(
        ([name, each]) => [name, withFields(each, overrides.get(name) ?? {})] as const,
      );
      return composer(new Map(overridden));
    },
  };
}
