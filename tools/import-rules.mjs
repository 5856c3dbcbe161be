/** How statements run: with a deadline, retried after conflicts; and their errors. */
const STATEMENTS = 'database/(query-with-deadline|database-errors)\\.ts$';
const PORT = 'platform/[^/]+\\.ts$';
const TRACING = 'observability/tracing';
/** Every feature registers its own metrics. */
const REGISTRY = 'observability/metrics/metrics-registry\\.ts$';

/** The folders that each folder may import; files directly in src/ may import any. */
const ALLOWED = {
  domain: [],
  config: ['domain'],
  cache: ['config', REGISTRY],
  database: ['config', 'domain', TRACING],
  // Errors redact API keys; the context of a call carries its caller.
  http: ['config', 'domain', 'database', TRACING, 'organizations/(api-key|caller)\\.ts$'],
  // Everything that a call can be refused by waits for the database in one way.
  organizations: ['domain', STATEMENTS],
  quota: ['organizations', TRACING, REGISTRY, 'config', 'domain', STATEMENTS],
  // The limits count over all replicas through the cache's Redis connection. auth imports this folder, never the reverse.
  'rate-limit': ['cache', 'http', REGISTRY, 'domain', 'config'],
  auth: ['rate-limit', 'organizations', 'cache', 'http', 'domain', 'config'],
  transcripts: ['cache', PORT, 'quota', 'http', TRACING, REGISTRY, 'domain', 'config'],
  channels: ['transcripts', 'auth', 'rate-limit', 'http', 'domain', 'config'],
  // The entries, the query and the examples are those of the channel operation.
  videos: ['channels/dto', 'transcripts', 'auth', 'rate-limit', 'http', 'domain', 'config'],
  playlists: ['channels/dto', 'transcripts', 'auth', 'rate-limit', 'http', 'domain', 'config'],
  mcp: ['transcripts', 'jobs', 'quota', 'auth', 'rate-limit', 'http', TRACING, REGISTRY, 'domain', 'config'],
  // Messages share the parameters, the NDJSON events and the guards of the HTTP route.
  messages: [
    'channels/dto',
    'videos/dto',
    'rate-limit',
    'transcripts',
    'auth',
    'http',
    'observability/logging',
    TRACING,
    'domain',
    'config',
  ],
  // A slice is a call without HTTP: it waits for the database and is settled as calls are. The entries, and the rules of languages
  // and video IDs, are those of the channel operation.
  jobs: [
    'channels/dto',
    'transcripts',
    PORT,
    'quota',
    'auth',
    'rate-limit',
    'organizations/(api-key|organization-errors|page)\\.ts$',
    'http',
    STATEMENTS,
    TRACING,
    REGISTRY,
    'domain',
    'config',
  ],
  // Lists have the pages of organizations.
  webhooks: ['organizations', 'auth', 'rate-limit', 'http', STATEMENTS, REGISTRY, 'domain', 'config'],
  usage: ['quota', 'auth', 'rate-limit', 'http', 'domain'],
  observability: [
    'transcripts',
    'auth',
    'rate-limit',
    'cache',
    'database',
    'organizations',
    'http',
    'domain',
    'config',
  ],
  // The usage under /admin is a customer's usage and more. Commands print transcripts and run jobs.
  admin: [
    'transcripts',
    'channels/dto',
    'auth',
    'rate-limit',
    'organizations',
    'quota',
    'usage/dto',
    'jobs',
    'http',
    'domain',
    'config',
    'database',
  ],
};

for (const [folder, allowed] of Object.entries(ALLOWED)) {
  const mutual = allowed.find((target) => ALLOWED[target]?.includes(folder));
  if (mutual) throw new Error(`src/${folder} and src/${mutual} must not import each other.`);
}

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
      comment: 'The port depends on the domain only.',
      from: { path: '^src/platform/[^/]+\\.ts$' },
      to: { path: '^src/', pathNot: '^src/domain/' },
    },
    {
      name: 'youtube-imports',
      severity: 'error',
      comment:
        'The adapter depends on the port, the domain, the configuration, the metrics registry and the shared documents only.',
      from: { path: '^src/platform/youtube/', pathNot: '\\.spec\\.ts$' },
      to: {
        path: '^src/',
        pathNot: ['^src/platform/', '^src/domain/', '^src/config/', `^src/${REGISTRY}`],
      },
    },
    {
      name: 'only-the-wiring-names-youtube',
      severity: 'error',
      comment: 'Everything else uses the port, so that another platform can be supported.',
      from: {
        path: '^src/',
        pathNot: ['^src/platform/youtube/', '^src/(app\\.module|smoke|local-transcripts|hostile-text\\.spec)\\.ts$'],
      },
      to: { path: '^src/platform/youtube/' },
    },
    {
      name: 'domain-is-plain',
      severity: 'error',
      comment: 'The domain depends on no package.',
      from: { path: '^src/domain/', pathNot: '\\.spec\\.ts$' },
      to: { dependencyTypes: ['npm', 'core'] },
    },
    {
      name: 'nothing-imports-the-start',
      severity: 'error',
      comment: 'Folders do not import the files that start and wire the application.',
      from: { path: '^src/[^/]+/' },
      to: { path: '^src/[^/]+\\.ts$' },
    },
    {
      name: 'fake-youtube-shares-no-code',
      severity: 'error',
      comment: 'The fake YouTube shares no code with the service, so that they cannot share a bug.',
      from: { path: '^(src|test/fake-youtube)/' },
      to: { path: '^(src|test/fake-youtube)/', pathNot: '^$1/' },
    },
    { name: 'no-circles', severity: 'error', comment: 'Imports are acyclic.', from: {}, to: { circular: true } },
    {
      name: 'resolvable',
      severity: 'error',
      comment: 'The import cannot be resolved.',
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
