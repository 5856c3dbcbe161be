/** How statements are run: with a deadline, in turn, again after a conflict; and what their errors mean. */
const STATEMENTS = 'database/(query-with-deadline|organization-turns|retry-conflicts|database-unavailable)\\.ts$';
const PORT = 'platform/[^/]+\\.ts$';
const TRACING = 'observability/tracing';

/** Which folder may import which. What is not listed here is refused; files directly in src/ wire everything together. */
const ALLOWED = {
  domain: [],
  config: [],
  cache: ['config'],
  database: ['config', 'domain', TRACING],
  // An error repeats what was sent, with API keys redacted.
  http: ['domain', 'database', TRACING, 'organizations/api-key\\.ts$'],
  // Everything that a call can be refused by waits for the database in one way.
  organizations: ['domain', STATEMENTS],
  quota: ['organizations', TRACING, 'config', 'domain', STATEMENTS],
  // The limits count over all replicas in the Redis server that the cache is connected to.
  'rate-limit': ['auth', 'cache', 'http', 'domain', 'config'],
  auth: ['rate-limit', 'organizations', 'cache', 'http', 'domain', 'config'],
  transcripts: ['cache', PORT, 'quota', 'http', TRACING, 'domain', 'config'],
  channels: ['transcripts', 'auth', 'rate-limit', 'http', 'domain', 'config'],
  // Messages share the query, the lines and the guards of the HTTP route.
  messages: ['channels', 'transcripts', 'auth', 'http', 'observability/logging', TRACING, 'domain', 'config'],
  usage: ['quota', 'auth', 'rate-limit', 'http', 'domain'],
  observability: [
    PORT,
    'transcripts',
    'quota',
    'auth',
    'rate-limit',
    'cache',
    'database',
    'organizations',
    'http',
    'domain',
    'config',
  ],
  // The usage under /admin is a customer's usage and more.
  admin: ['auth', 'rate-limit', 'organizations', 'quota', 'usage/dto', 'http', 'domain', 'config', 'database'],
};

const folderRules = Object.entries(ALLOWED).map(([folder, allowed]) => ({
  name: `${folder}-imports`,
  severity: 'error',
  comment: `src/${folder} may import ${allowed.join(', ') || 'no sibling'} only.`,
  from: { path: `^src/${folder}/`, pathNot: '\\.spec\\.ts$' },
  to: {
    path: '^src/',
    pathNot: [`^src/${folder}/`, ...allowed.map((target) => `^src/${target}${target.endsWith('$') ? '' : '/'}`)],
  },
}));

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    ...folderRules,
    {
      name: 'port-imports',
      severity: 'error',
      comment: 'The port speaks of the domain only.',
      from: { path: '^src/platform/[^/]+\\.ts$' },
      to: { path: '^src/', pathNot: '^src/domain/' },
    },
    {
      name: 'youtube-imports',
      severity: 'error',
      comment: 'The adapter knows the port, the domain and the configuration.',
      from: { path: '^src/platform/youtube/', pathNot: '\\.spec\\.ts$' },
      to: { path: '^src/', pathNot: ['^src/platform/', '^src/domain/', '^src/config/'] },
    },
    {
      name: 'only-the-wiring-names-youtube',
      severity: 'error',
      comment: 'Everything else goes through the port, so that the platform can be another one.',
      from: {
        path: '^src/',
        pathNot: ['^src/platform/youtube/', '^src/(app\\.module|smoke|hostile-text\\.spec)\\.ts$'],
      },
      to: { path: '^src/platform/youtube/' },
    },
    {
      name: 'domain-is-plain',
      severity: 'error',
      comment: 'The domain needs no framework.',
      from: { path: '^src/domain/', pathNot: '\\.spec\\.ts$' },
      to: { dependencyTypes: ['npm', 'core'] },
    },
    {
      name: 'nothing-imports-the-start',
      severity: 'error',
      comment: 'Folders do not reach up into the files that start and wire the application.',
      from: { path: '^src/[^/]+/' },
      to: { path: '^src/[^/]+\\.ts$' },
    },
    {
      name: 'fake-youtube-shares-no-code',
      severity: 'error',
      comment: 'The fake YouTube shares no code with the service, so that it cannot share a misreading.',
      from: { path: '^(src|test/fake-youtube)/' },
      to: { path: '^(src|test/fake-youtube)/', pathNot: '^$1/' },
    },
    { name: 'no-circles', severity: 'error', comment: 'Imports go one way.', from: {}, to: { circular: true } },
    {
      name: 'resolvable',
      severity: 'error',
      comment: 'An import that leads nowhere.',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.js'],
    },
  },
};
