// An OpenID provider in a process of its own. Its keys, port and clients arrive over IPC; everybody who signs in is "ada".
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

// Node.js 20.19 lacks it.
URL.parse ??= (text, base) => {
  try {
    return new URL(text, base);
  } catch {
    return null;
  }
};

let settings;
let provider;
let requests = {};

const ACCOUNT = 'ada';

/** What the access tokens of a client have in addition. */
const claimsOf = ({ clientId }) => settings.claims[clientId] ?? settings.claims['*'];

function createProvider() {
  return new Provider(settings.issuer, {
    jwks: { keys: settings.keys },
    clients: settings.clients,
    cookies: { keys: ['a key of the tests'] },
    findAccount: (_context, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
    pkce: { required: () => true },
    extraTokenClaims: (_context, token) => ({
      ...claimsOf(token),
      ...(token.accountId && { email: `${token.accountId}@example.com` }),
    }),
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      registration: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        defaultResource: () => settings.audience,
        getResourceServerInfo: () => ({
          scope: 'openid',
          audience: settings.audience,
          accessTokenTTL: 600,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: settings.keys[0].alg } },
        }),
      },
    },
  });
}

/** Signs in and agrees to everything, as the forms of a provider do. */
async function interact(request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    await provider.interactionFinished(request, response, { login: { accountId: ACCOUNT } });
    return;
  }
  const grant = grantId
    ? await provider.Grant.find(grantId)
    : new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope('openid');
  for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {}))
    grant.addResourceScope(resource, scopes.join(' '));
  await provider.interactionFinished(
    request,
    response,
    { consent: { grantId: await grant.save() } },
    { mergeWithLastSubmission: true },
  );
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url, settings.issuer);
  requests[pathname] = (requests[pathname] ?? 0) + 1;
  if (pathname.startsWith('/interaction/')) interact(request, response).catch((error) => response.destroy(error));
  else provider.callback()(request, response);
});

process.on('message', (message) => {
  if (message.kind === 'requests') {
    process.send(requests);
    requests = {};
    return;
  }
  settings = { ...settings, ...message.settings };
  const start = () => {
    settings.issuer ??= `http://127.0.0.1:${server.address().port}`;
    provider = createProvider();
    process.send({ issuer: settings.issuer });
  };
  if (server.listening) start();
  else server.listen(settings.port ?? 0, '127.0.0.1', start);
});
