import type { Request } from 'express';
import type { Environment } from '../config/environment.js';
import type { ErrorCode } from '../domain/error-codes.js';
import { parseUrl } from '../domain/page-url.js';

/** Where the metadata of the service as an OAuth resource is (RFC 9728); that of another resource has its path appended. */
export const METADATA_PATH = '/.well-known/oauth-protected-resource';
export const MCP_PATH = '/mcp';

/** A host can have quotes, which would end the text in the header. */
const ADDRESS = /^https?:\/\/[\w.:[\]-]+$/;

/**
 * The address of the service as the caller reaches it. It is returned to this caller only, which has sent it, and no response is
 * cached; behind a proxy it is the one that the caller sent to the proxy. Of the host of `OIDC_AUDIENCE` the scheme and port are
 * those of that URL, because not every proxy passes them on.
 */
export function addressOf(
  { protocol, host }: Pick<Request, 'protocol' | 'host'>,
  audience?: string,
): string | undefined {
  const sent = parseUrl(`${protocol}://${host}`);
  const configured = parseUrl(audience ?? '');
  const { origin = '' } = configured && configured.hostname === sent?.hostname ? configured : (sent ?? {});
  return ADDRESS.test(origin) ? origin : undefined;
}

/** The header `WWW-Authenticate` of a 401. With an identity provider it says where a client learns how to sign in. */
export function challengeOf(
  request: Pick<Request, 'protocol' | 'host' | 'path'>,
  code: ErrorCode,
  { OIDC_ISSUER, OIDC_AUDIENCE }: Environment,
): string {
  if (OIDC_ISSUER === undefined) return 'Bearer';
  const address = addressOf(request, OIDC_AUDIENCE);
  // Metadata names the resource of its own path, and for every path the resource is OIDC_AUDIENCE if that is a URL.
  const isMcp = request.path === MCP_PATH || parseUrl(OIDC_AUDIENCE ?? '')?.pathname === MCP_PATH;
  const metadata = address && `${address}${METADATA_PATH}${isMcp ? MCP_PATH : ''}`;
  const parameters = [
    ...(code === 'invalid_token' ? ['error="invalid_token"'] : []),
    ...(metadata ? [`resource_metadata="${metadata}"`] : []),
  ];
  return ['Bearer', parameters.join(', ')].filter(Boolean).join(' ');
}
