import { createHash } from 'node:crypto';
import type { Client } from '../catalogue/model.js';
import type { JsonObject } from '../json.js';

/** An issued visitor's identity is short for WEB and some 550 characters long for the apps. */
const APP_VISITOR_BYTES = 400;

/** Visitor data as the platform issues it, deterministic for a seed. */
export function visitorDataOf(client: Client | null, seed: string): string {
  const short = createHash('sha256').update(seed).digest().subarray(0, 11);
  const head = Buffer.concat([Buffer.from([10, 11]), Buffer.from(short.toString('base64url').slice(0, 11))]);
  const bytes = client === 'WEB' || client === null ? head : Buffer.concat([head, filler(seed)]);
  return encodeURIComponent(bytes.toString('base64').replaceAll('+', '-').replaceAll('/', '_'));
}

/** The `responseContext` that starts every InnerTube response. */
export function responseContext(client: Client | null, visitorData: string): JsonObject {
  return {
    visitorData,
    // The platform omits this for VISIONOS.
    ...(client !== 'VISIONOS' && {
      serviceTrackingParams: [
        { service: 'CSI', params: [{ key: 'c', value: client ?? 'WEB' }] },
        { service: 'GFEEDBACK', params: [{ key: 'logged_in', value: '0' }] },
      ],
    }),
    ...(client === 'WEB' ? { mainAppWebResponseContext: { loggedOut: true } } : { maxAgeSeconds: 0 }),
  };
}

function filler(seed: string): Buffer {
  const blocks = Array.from({ length: Math.ceil(APP_VISITOR_BYTES / 64) }, (_, index) =>
    createHash('sha512').update(`${seed} ${index}`).digest(),
  );
  return Buffer.concat(blocks).subarray(0, APP_VISITOR_BYTES);
}
