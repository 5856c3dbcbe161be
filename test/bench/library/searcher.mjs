import { median, percentile } from '../figures.mjs';
import { APPLICATION } from '../growth/statements.mjs';
import { cpuMsOf } from './fill.mjs';

const SECONDS_MAX = 6;
const LIMIT = 20;
/** Of a search, whose function has others. */
const STATEMENT = /\bAS total\b/;
const READS_PASSAGES = /\bSELECT passage\.\*/;

/** Searches over HTTP, of whose statement PostgreSQL logs the plan. */
export class Searcher {
  problems = [];
  #service;
  #log;
  #client;
  #runs;

  constructor(service, log, client, runs) {
    this.#service = service;
    this.#log = log;
    this.#client = client;
    this.#runs = runs;
  }

  async run(key, { name, q, sort, query = '' }) {
    const runs = [];
    const until = performance.now() + SECONDS_MAX * 1000;
    // The first one warms up.
    while (runs.length < 2 || (runs.length <= this.#runs && performance.now() < until)) {
      let [ms, status, body] = [0, 0, {}];
      const before = await this.#cpuOfBackends();
      const plans = await this.#log.plansDuring(async () => {
        const startedAt = performance.now();
        const path = `/library/search?q=${encodeURIComponent(q)}&sort=${sort}&limit=${LIMIT}${query}`;
        const url = `http://127.0.0.1:${this.#service.port}${path}`;
        const response = await fetch(url, { headers: { Authorization: `Bearer ${key}` } });
        [status, body] = [response.status, await response.json()];
        ms = performance.now() - startedAt;
      });
      const plan = plans.find(({ text }) => STATEMENT.test(text));
      if (status !== 200 || !plan) {
        this.problems.push(`${name}, ${sort}: ${status}, ${JSON.stringify(body).slice(0, 200)}`);
        return { total: NaN, indexes: '', ms: NaN, cpu: NaN, p95: NaN, http: NaN, blocks: NaN, looked: NaN };
      }
      const nodes = plans.filter(({ text }) => READS_PASSAGES.test(text)).flatMap(({ top }) => nodesOf(top));
      const cpuMs = (await cpuMsOf(plan.pid)) - (before.get(plan.pid) ?? NaN);
      runs.push({ cpuMs, ms: plan.ms, http: ms, plan, nodes, body });
      if (plans.flatMap(({ top }) => nodesOf(top)).some(readsTable))
        this.problems.push(`${name}, ${sort}: a plan reads all passages`);
    }
    runs.shift();
    const [{ plan, nodes, body }] = runs;
    const indexes = [...new Set(nodes.flatMap((node) => /library_passages_(\w+)/.exec(node['Index Name'])?.[1] ?? []))];
    const ms = runs.map((run) => run.ms);
    const cpu = runs.map(({ cpuMs }) => cpuMs).filter((each) => !Number.isNaN(each));
    return {
      ...{ total: body.total, indexes: indexes.join(', '), cpu: median(cpu), ms: median(ms) },
      p95: percentile(ms, 0.95),
      ...{ http: median(runs.map(({ http }) => http)), blocks: plan.blocks, looked: lookedAt(nodes) },
    };
  }

  /** The CPU time of each backend of the service, whose connections are renewed now and then. */
  async #cpuOfBackends() {
    const { rows } = await this.#client.query(BACKENDS);
    return new Map(await Promise.all(rows.map(async ({ pid }) => [pid, await cpuMsOf(pid)])));
  }
}

const BACKENDS = `SELECT pid FROM pg_stat_activity WHERE application_name = '${APPLICATION}'`;

const nodesOf = (node) => [node, ...(node.Plans ?? []).flatMap(nodesOf)];

const readsTable = (node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] === 'library_passages';

/** The passages whose rows were read. */
const lookedAt = (nodes) =>
  nodes
    .filter((node) => node['Relation Name'] === 'library_passages')
    .map((node) => {
      const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
      return (node['Actual Rows'] + removed) * node['Actual Loops'];
    })
    .reduce((sum, rows) => sum + rows, 0);
