import type { ClientFields } from '../../../config/variables.js';
import { YOUTUBE_CLIENTS, type YoutubeClient } from '../../../config/environment.js';
import { type OutgoingRequest, YOUTUBE_ORIGIN } from '../egress/http-transport.js';

/** What the requests of one client have in common. */
interface ClientProfile {
  /** The number of the client, sent as a header. */
  id: string;
  /** `context.client`, without the visitor data; `clientVersion` and `userAgent` are headers too. */
  fields: Readonly<Record<string, unknown>> & { clientVersion: string; userAgent: string };
  headers?: Readonly<Record<string, string>>;
}

/*
 * Contexts and headers are those that youtubei.js 18.1.0 (June 2026) sends, with newer versions where they are known: an old
 * version is answered with 400 or an error. Each client names its version, where it comes from and when it was seen.
 */
const SCREEN = {
  ...{ hl: 'en', gl: 'US', remoteHost: '' },
  ...{ screenDensityFloat: 1, screenHeightPoints: 1440, screenPixelDensity: 1, screenWidthPoints: 2560 },
};
const BROWSER = { browserName: 'Chrome', browserVersion: '125.0.0.0' };

/** The fields after the client's own, in the order in which they are sent. */
function surroundings(
  formFactor: 'UNKNOWN_FORM_FACTOR' | 'SMALL_FORM_FACTOR',
  device: { deviceMake: string; deviceModel: string; browserName?: string; browserVersion?: string },
) {
  return {
    clientFormFactor: formFactor,
    userInterfaceTheme: 'USER_INTERFACE_THEME_LIGHT',
    timeZone: 'UTC',
    originalUrl: YOUTUBE_ORIGIN,
    ...device,
    utcOffsetMinutes: 0,
    memoryTotalKbytes: '8000000',
    mainAppWebInfo: {
      graftUrl: YOUTUBE_ORIGIN,
      pwaInstallabilityStatus: 'PWA_INSTALLABILITY_STATUS_UNKNOWN',
      webDisplayMode: 'WEB_DISPLAY_MODE_BROWSER',
      isWebNativeShareAvailable: true,
    },
  };
}

const CLIENTS: Readonly<Record<YoutubeClient, ClientProfile>> = {
  // 1.02: youtubei.js 18.1.0, recorded in June 2026, still served in September 2026. 1.04 is known, but not recorded.
  VISIONOS: {
    id: '101',
    fields: {
      ...SCREEN,
      clientName: 'VISIONOS',
      clientVersion: '1.02',
      osName: 'visionOS',
      osVersion: '26.5.23O471',
      userAgent:
        'Mozilla/5.0 (Macintosh; Intel Mac OS X 15_7_3) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15',
      platform: 'MOBILE',
      ...surroundings('UNKNOWN_FORM_FACTOR', { deviceMake: 'Apple', deviceModel: 'RealityDevice17,1' }),
    },
  },
  // 21.26.364: public issues of September 2026, where `player` serves videos made for kids.
  ANDROID: {
    id: '3',
    headers: { 'x-goog-api-format-version': '2' },
    fields: {
      ...SCREEN,
      clientName: 'ANDROID',
      clientVersion: '21.26.364',
      osName: 'Android',
      osVersion: '11',
      userAgent: 'com.google.android.youtube/21.26.364 (Linux; U; Android 11) gzip',
      platform: 'MOBILE',
      ...surroundings('SMALL_FORM_FACTOR', { deviceMake: '', deviceModel: '', ...BROWSER }),
      androidSdkVersion: 30,
    },
  },
  // 21.26.4: public issues of September 2026.
  IOS: {
    id: '5',
    fields: {
      ...SCREEN,
      clientName: 'IOS',
      clientVersion: '21.26.4',
      osName: 'iOS',
      osVersion: '18.3.2.22D82',
      userAgent: 'com.google.ios.youtube/21.26.4 (iPhone16,2; U; CPU iOS 18_3_2 like Mac OS X;)',
      platform: 'MOBILE',
      ...surroundings('UNKNOWN_FORM_FACTOR', { deviceMake: 'Apple', deviceModel: 'iPhone16,2' }),
    },
  },
  // 1.65.10: youtubei.js 18.1.0, the newest known in September 2026.
  ANDROID_VR: {
    id: '28',
    fields: {
      ...SCREEN,
      clientName: 'ANDROID_VR',
      clientVersion: '1.65.10',
      osName: 'Android',
      osVersion: '12L',
      userAgent:
        'com.google.android.apps.youtube.vr.oculus/1.65.10 (Linux; U; Android 12L; eureka-user Build/SQ3A.220605.009.A1) gzip',
      platform: 'MOBILE',
      ...surroundings('SMALL_FORM_FACTOR', { deviceMake: 'Oculus', deviceModel: 'Quest 3', ...BROWSER }),
      androidSdkVersion: 32,
    },
  },
  // 21.03.36: youtubei.js 18.1.0, recorded with the reel endpoint in June 2026.
  ANDROID_REEL: {
    id: '3',
    headers: { 'x-goog-api-format-version': '2' },
    fields: {
      ...SCREEN,
      clientName: 'ANDROID',
      clientVersion: '21.03.36',
      osName: 'Android',
      osVersion: '13',
      userAgent:
        'com.google.android.youtube/21.03.36(Linux; U; Android 16; en_US; SM-S908E Build/TP1A.220624.014) gzip',
      platform: 'MOBILE',
      ...surroundings('SMALL_FORM_FACTOR', { deviceMake: '', deviceModel: '', ...BROWSER }),
      androidSdkVersion: 36,
    },
  },
  // 2.20260805.01.00: public issues of September 2026. Serves lists and dates; videos only with PO tokens.
  WEB: {
    id: '1',
    fields: {
      ...SCREEN,
      clientName: 'WEB',
      clientVersion: '2.20260805.01.00',
      osName: 'Windows',
      osVersion: '10.0',
      userAgent:
        'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
      platform: 'DESKTOP',
      ...surroundings('UNKNOWN_FORM_FACTOR', { deviceMake: '', deviceModel: '', ...BROWSER }),
    },
  },
};

const CONTEXT = {
  user: { enableSafetyMode: false, lockedSafetyMode: false },
  request: { useSsl: true, internalExperimentFlags: [] },
};

export interface InnertubeQuery {
  /** Metric label: `player`, `uploads`, … */
  kind: string;
  client: YoutubeClient;
  /** Below `/youtubei/v1/`. */
  path: string;
  payload: Readonly<Record<string, unknown>>;
  /** The `$fields` mask that selects what is read, or null for the complete response. */
  fields: string | null;
}

/** How a client states its version: in the body of every request and, unless that is refused, in two headers. */
export interface VersionForm {
  /** Null for that of the release or the operator. */
  readonly version: string | null;
  readonly headers: boolean;
}
export const CONFIGURED: VersionForm = { version: null, headers: true };

/** Composes the requests of every client, with the operator's overrides of versions and devices. */
export class ClientRequests {
  private readonly profiles: Readonly<Record<YoutubeClient, ClientProfile>>;

  constructor(overrides: Readonly<Partial<Record<YoutubeClient, ClientFields>>> = {}) {
    const profiles = { ...CLIENTS };
    for (const client of YOUTUBE_CLIENTS)
      profiles[client] = { ...profiles[client], fields: { ...profiles[client].fields, ...overrides[client] } };
    this.profiles = profiles;
  }

  /**
   * @param visitorData null sends none
   * @param form how the version is stated
   */
  compose(
    { client, path, payload, fields }: InnertubeQuery,
    visitorData: string | null,
    form: VersionForm = CONFIGURED,
  ): OutgoingRequest {
    const profile = this.profiles[client];
    const clientVersion = form.version ?? profile.fields.clientVersion;
    const url = new URL(`/youtubei/v1/${path}?prettyPrint=false&alt=json`, YOUTUBE_ORIGIN);
    if (fields !== null) url.searchParams.set('$fields', fields);
    const headers = {
      ...{ accept: '*/*', 'accept-language': '*', 'content-type': 'application/json', origin: YOUTUBE_ORIGIN },
      'user-agent': profile.fields.userAgent,
      ...(form.headers && { 'x-youtube-client-name': profile.id, 'x-youtube-client-version': clientVersion }),
      ...profile.headers,
      ...(visitorData !== null && { 'x-goog-visitor-id': visitorData }),
    };
    const context = {
      client: { ...profile.fields, clientVersion, ...(visitorData !== null && { visitorData }) },
      ...CONTEXT,
    };
    return { url, headers, body: JSON.stringify({ ...payload, context }) };
  }

  /** The user agent with which a client fetches the URLs in its responses. */
  userAgent(client: YoutubeClient): string {
    return this.profiles[client].fields.userAgent;
  }
}
