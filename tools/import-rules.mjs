/** How statements run with a deadline, and their errors. */
const STATEMENTS = 'database/(query-with-deadline|database-errors)\\.ts$';
const PORT = 'platform/[^/]+\\.ts$';
/** Every feature registers its own metrics. */
const REGISTRY = 'observability/metrics-registry\\.ts$';
const TRACING = 'observability/tracing';

/**
 * The folders of src from the lowest floor to the highest, each with what it may import: only lower floors. Files directly in src/,
 * the wiring, are the highest floor and may import any.
 */
const FLOORS = [
  { domain: [] },
  { config: ['domain'] },
  { observability: ['config', 'domain'] },
  {
    cache: ['config', 'domain/waiting\\.ts$', 'observability/logging/logger\\.ts$', REGISTRY],
    database: ['config', 'domain/(page|waiting)\\.ts$'],
    background: [REGISTRY],
  },
  {
    http: ['database', 'observability', 'config', 'domain'],
    audit: ['domain'],
  },
  {
    organizations: ['audit', STATEMENTS, 'database/read-page\\.ts$', 'http/routes/response-docs\\.ts$', 'domain'],
    'rate-limit': ['cache', 'http', REGISTRY, 'config', 'domain'],
  },
  {
    quota: [
      'audit',
      'organizations',
      'http/routes/response-docs\\.ts$',
      STATEMENTS,
      TRACING,
      REGISTRY,
      'config',
      'domain',
    ],
    auth: ['organizations', 'rate-limit', 'http', 'cache', REGISTRY, 'config', 'domain'],
  },
  {
    transcripts: [PORT, STATEMENTS, 'cache/cache-budget\\.ts$', 'quota', 'http', TRACING, REGISTRY, 'config', 'domain'],
  },
  {
    channels: ['transcripts', 'auth', 'http', 'domain'],
    videos: ['transcripts', 'auth', 'http', 'domain'],
    playlists: ['transcripts', 'auth', 'http', 'domain'],
    usage: ['audit', 'quota', 'auth', 'http', 'domain'],
    health: ['auth', 'http', 'cache', 'database', REGISTRY, 'config', 'domain'],
  },
  {
    // A slice is a call without HTTP: it waits for the database and is settled as calls are.
    jobs: [
      'transcripts',
      PORT,
      'quota',
      'auth',
      // What a feed link is.
      'organizations/feed-links\\.service\\.ts$',
      'background',
      'http',
      STATEMENTS,
      TRACING,
      REGISTRY,
      'config',
      'domain',
    ],
  },
  {
    // What jobs and subscriptions keep.
    library: [
      'jobs',
      'transcripts',
      'background',
      'auth',
      'rate-limit',
      'http',
      STATEMENTS,
      REGISTRY,
      'config',
      'domain',
    ],
  },
  {
    // The same parameters, events and guards as over HTTP.
    messages: [
      'library',
      'videos/dto',
      'jobs',
      'transcripts',
      'auth',
      'rate-limit',
      'http',
      'observability/logging',
      TRACING,
      'config',
      'domain',
    ],
    // A replay reads the feed.
    webhooks: ['jobs', 'background', 'auth', 'organizations', 'http', STATEMENTS, REGISTRY, 'config', 'domain'],
    mcp: ['library', 'jobs', 'transcripts', 'quota', 'auth', 'rate-limit', 'http', 'observability', 'config', 'domain'],
  },
  {
    // The usage under /admin is a customer's usage and more. Commands run the service, and call it by the client or over MCP.
    admin: [
      PORT,
      'mcp',
      'library/dto',
      'jobs',
      'transcripts',
      'quota',
      'auth',
      'audit',
      'organizations',
      'http',
      'background',
      'observability/logging',
      'config',
      'domain',
    ],
  },
];

FLOORS.forEach((floor, index) => {
  const lower = ['platform', ...FLOORS.slice(0, index).flatMap(Object.keys)];
  for (const [folder, allowed] of Object.entries(floor))
    for (const target of allowed)
      if (!lower.includes(target.split('/')[0]))
        throw new Error(`src/${folder} and src/${target}: imports go to lower floors only.`);
});

const folderRules = FLOORS.flatMap(Object.entries).map(([folder, allowed]) => ({
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
      comment: 'The adapter depends on the port, the domain, the configuration and the metrics registry only.',
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
        pathNot: ['^src/platform/youtube/', '^src/(app\\.module|smoke|hostile-text\\.spec)\\.ts$'],
      },
      to: { path: '^src/platform/youtube/' },
    },
    {
      name: 'only-commands-call-by-the-client',
      severity: 'error',
      comment: 'The client is for callers of the service. Commands are one, of the service in their process.',
      from: { path: '^src/', pathNot: '^src/admin/cli/' },
      to: { path: '^clients/' },
    },
    {
      name: 'domain-is-plain',
      severity: 'error',
      comment: 'The domain depends on no package but the one in which its types are written.',
      from: { path: '^src/domain/', pathNot: '\\.spec\\.ts$' },
      to: { dependencyTypes: ['npm', 'core'], pathNot: 'node_modules/zod/' },
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
      from: { path: '^(src|test/fake-youtube)/', pathNot: '\\.spec\\.ts$' },
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
