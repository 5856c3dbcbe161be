import type { YoutubeClient } from '../../../config/environment.js';
import { YOUTUBE_ORIGIN } from '../egress/platform-url.js';
import { UnreadableError } from '../response-parsing.js';
import type { OutgoingRequest } from '../egress/http-transport.js';

/** WEB reads channels and playlists; the others read captions. */
export type InnertubeClientName = YoutubeClient | 'WEB';

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
   * @param fields a `$fields` mask, or null for the complete response
   */
  compose(
    client: InnertubeClientName,
    path: string,
    payload: Readonly<Record<string, unknown>>,
    visitorData: string,
    fields: string | null,
  ): OutgoingRequest;
  /** The user agent with which a client fetches the URLs in its responses. */
  userAgent(client: InnertubeClientName): string;
  /** Generates visitor data as a client does before the platform has issued any. */
  localVisitorData(): string;
}

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
  const { Innertube, Platform, ProtoUtils, Utils } = await import('youtubei.js/web.bundle');
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
  const templates = new Map<InnertubeClientName, ClientTemplate>();
  const names: readonly InnertubeClientName[] = ['WEB', 'VISIONOS', 'ANDROID', 'ANDROID_VR'];
  for (const name of names) {
    await innertube.session.actions.execute('/player', { client: name, parse: false });
    templates.set(name, readTemplate(captured));
  }
  return composer(templates, () =>
    ProtoUtils.encodeVisitorData(Utils.generateRandomString(11), Math.floor(Date.now() / 1000)),
  );
}

interface CapturedRequest {
  headers: Record<string, string>;
  body: unknown;
}

function readTemplate(captured: CapturedRequest | null): ClientTemplate {
  const body: unknown = typeof captured?.body === 'string' ? JSON.parse(captured.body) : null;
  const context = isRecord(body) && isRecord(body['context']) ? body['context'] : null;
  const client = context && isRecord(context['client']) ? { ...context['client'] } : null;
  if (!captured || !context || !client) throw new UnreadableError('a request context from youtubei.js');
  delete client['visitorData'];
  return { headers: captured.headers, context, client };
}

function composer(
  templates: ReadonlyMap<InnertubeClientName, ClientTemplate>,
  localVisitorData: () => string,
): InnertubeRequestTemplates {
  const template = (client: InnertubeClientName): ClientTemplate => {
    const found = templates.get(client);
    if (!found) throw new UnreadableError(`a request context for ${client} from youtubei.js`);
    return found;
  };
  return {
    compose(client, path, payload, visitorData, fields) {
      const { headers, context, client: clientContext } = template(client);
      const url = new URL(`/youtubei/v1/${path}?prettyPrint=false&alt=json`, YOUTUBE_ORIGIN);
      if (fields !== null) url.searchParams.set('$fields', fields);
      const body = { ...payload, context: { ...context, client: { ...clientContext, visitorData } } };
      return { url, headers: { ...headers, 'x-goog-visitor-id': visitorData }, body: JSON.stringify(body) };
    },
    userAgent: (client) => template(client).headers['user-agent'] ?? '',
    localVisitorData,
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
