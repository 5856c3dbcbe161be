/** How statements are run: within their deadline, in turn, again after a conflict; and what their errors mean. */
const STATEMENTS = 'database/(prompt-query|organization-turns|retry-conflicts|database-away)\\.ts$';

/** Which folder may import which. What is not listed here is refused; files directly in src/ wire everything together. */
const ALLOWED = {
  domain: [],
  config: [],
  // Where spans go is known to the wiring; whoever makes them knows this much.
  tracing: [],
  logging: ['http', 'organizations', 'tracing'],
  cache: ['config'],
  database: ['config', 'domain', 'tracing'],
  // An error repeats what was sent, without the keys in it.
  http: ['domain', 'database', 'tracing', 'organizations/api-key\\.ts$'],
  // What a call waits for while it can still be refused is waited for in one way.
  organizations: ['domain', STATEMENTS],
  quota: ['organizations', 'tracing', 'config', 'domain', STATEMENTS],
  // The limits count over all replicas in the server that the cache has a connection to.
  access: ['organizations', 'cache', 'http', 'domain', 'config'],
  transcripts: ['cache', 'platform/[^/]+\\.ts$', 'quota', 'tracing', 'domain', 'config'],
  channels: ['transcripts', 'access', 'http', 'domain', 'config'],
  // The same call over another way: the query, the lines and the gates are those of the HTTP route.
  messages: ['channels', 'transcripts', 'access', 'http', 'logging', 'tracing', 'domain', 'config'],
  usage: ['quota', 'access', 'http', 'domain'],
  health: ['cache', 'database', 'http'],
  // It reads what the others count and holds; none of them knows of it.
  metrics: ['platform/[^/]+\\.ts$', 'transcripts', 'quota', 'access', 'cache', 'health', 'http', 'domain', 'config'],
  admin: ['access', 'organizations', 'quota', 'http', 'domain', 'config', 'database'],
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
      name: 'stand-in-apart',
      severity: 'error',
      comment: 'The stand-in shares no code with the service, so that it cannot share a misreading.',
      from: { path: '^(src|stand-in)/' },
      to: { path: '^(src|stand-in)/', pathNot: '^$1/' },
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
    tsConfig: { fileName: 'tsconfig.spec.json' },
    doNotFollow: { path: 'node_modules' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default'],
      extensions: ['.ts', '.js'],
    },
  },
};
