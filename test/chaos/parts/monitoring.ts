import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { PROJECT } from '../harness/program.js';
import { Prometheus, requirePrometheus, type Alert } from '../harness/prometheus.js';
import { atOnce, until } from '../harness/until.js';
import { nothing, type ChaosRun, type Part, type PartReport } from '../chaos-run.js';
import { answerPanels, type AnsweredPanel, type Dashboard } from './monitoring/dashboard.js';
import { Deployment, METRICS_TOKEN } from './monitoring/deployment.js';
import { drawPanels } from './monitoring/picture.js';
import { SCENARIOS, WORKING } from './monitoring/scenarios.js';

/** The slowest alert needs 31 seconds of a slow call, and then 15 of waiting. */
const FIRING_MS = 90_000;
const STARTS_AT_ONCE = 3;
/** Until the deployment that works has sent data for every panel. */
const DASHBOARD_MS = 30_000;
/** Where a minute is a second, other work on the machine can cause them too, such as that of the other parts in the short form. */
const ALERTS_OF_SPEED: ReadonlySet<string> = new Set(['EventLoopLag', 'SlowCalls']);

/** A real Prometheus with the project's rules: each alert fires for its cause, and the dashboard has data. */
export const monitoring: Part = async (chaosRun) => {
  requirePrometheus();
  const rules = await readFile(join(PROJECT, 'deploy/alerts.yml'), 'utf8');
  const deployments = new Map<string, Deployment>();
  let prometheus: Prometheus | undefined;
  try {
    await atOnce(Object.entries(SCENARIOS), STARTS_AT_ONCE, async ([job, scenario]) => {
      const folder = join(chaosRun.folder, job);
      await mkdir(folder, { mode: 0o711 });
      deployments.set(job, await Deployment.start(chaosRun, folder, scenario));
    });
    chaosRun.say(`${deployments.size} deployments run`);
    const jobs = [...deployments].map(([job, { services }]) => [job, services.map(({ url }) => url)] as const);
    prometheus = await Prometheus.start(chaosRun.folder, {
      jobs: new Map(jobs),
      metricsToken: METRICS_TOKEN,
      rules: minutesAsSeconds(rules),
      intervalSeconds: 1,
    });
    return await new Monitoring(chaosRun, prometheus, deployments, alertNames(rules)).run();
  } finally {
    await prometheus?.stop();
    await Promise.all([...deployments.values()].map((deployment) => deployment.stop()));
  }
};

/** Shortens every window and every `for` of the rules to a sixtieth. */
function minutesAsSeconds(rules: string): string {
  return rules.replace(/\[(\d+)m\]/g, '[$1s]').replace(/for: (\d+)m$/gm, 'for: $1s');
}

function alertNames(rules: string): string[] {
  const { groups } = parse(rules) as { groups: { rules: { alert: string }[] }[] };
  return groups.flatMap((group) => group.rules.map(({ alert }) => alert));
}

class Monitoring {
  private readonly startedAtMs = performance.now();
  /** Seconds until an alert of a job fired for the first time, by both. */
  private readonly firedAfter = new Map<string, number>();
  private readonly unrendered = new Set<string>();
  /** The answers for all processes. */
  private panels: AnsweredPanel[] | undefined;
  private withoutData: string[] = [];

  constructor(
    private readonly chaosRun: ChaosRun,
    private readonly prometheus: Prometheus,
    private readonly deployments: ReadonlyMap<string, Deployment>,
    private readonly names: readonly string[],
  ) {}

  async run(): Promise<PartReport> {
    const ended = new AbortController();
    const watching = this.watch(ended.signal);
    const faults = Object.entries(SCENARIOS).map(async ([job, scenario]) => {
      const deployment = this.deployments.get(job);
      if (!deployment) throw new Error(`${job} was not started.`);
      await scenario.run(deployment, ended.signal, (alert) => this.fires(job, alert));
    });
    const running = Promise.all([watching, ...faults]);
    try {
      await Promise.race([running, this.allFire()]);
      await until('Every panel has data', () => this.readDashboard(), DASHBOARD_MS, 1_000).catch(() => undefined);
      await this.drawDashboard();
    } finally {
      ended.abort();
      await running;
    }
    return this.report();
  }

  /** Records the firing alerts until the signal. */
  private async watch(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      for (const alert of await this.prometheus.alerts()) if (alert.state === 'firing') this.note(alert);
      await new Promise((resolve) => setTimeout(resolve, 250));
    }
  }

  private note({ labels, annotations }: Alert): void {
    const name = `${labels['job']} ${labels['alertname']}`;
    if (this.firedAfter.has(name)) return;
    this.firedAfter.set(name, (performance.now() - this.startedAtMs) / 1000);
    this.chaosRun.say(`${name}: ${annotations['summary']}`);
    for (const text of Object.values(annotations)) if (/\{\{|<error|no value/.test(text)) this.unrendered.add(text);
  }

  private async fires(job: string, alert: string): Promise<void> {
    await until(`${job} ${alert} fires`, () => this.firedAfter.has(`${job} ${alert}`), FIRING_MS, 100);
  }

  /** Waits for every alert; one that does not fire is reported at the end. */
  private async allFire(): Promise<void> {
    const expected = Object.entries(SCENARIOS).flatMap(([job, { alerts }]) => alerts.map((alert) => ({ job, alert })));
    await Promise.allSettled(expected.map(({ job, alert }) => this.fires(job, alert)));
  }

  /**
   * Sends the queries of the dashboard, for all processes of the job and for each that runs.
   *
   * @returns whether each has data
   */
  private async readDashboard(): Promise<boolean> {
    const dashboard = JSON.parse(await readFile(join(PROJECT, 'deploy/grafana/dashboard.json'), 'utf8')) as Dashboard;
    const services = this.deployments.get(WORKING)?.services.filter(({ program }) => !program.hasEnded) ?? [];
    const instances = services.map(({ url }) => new URL(url).host.replaceAll('.', '\\.'));
    const range = this.range();
    this.panels = undefined;
    this.withoutData = [];
    for (const instance of ['.*', ...instances]) {
      const answers = await answerPanels(this.prometheus, dashboard, { job: WORKING, instance }, range);
      this.panels ??= answers.panels;
      this.withoutData.push(...answers.findings);
    }
    return this.withoutData.length === 0;
  }

  private async drawDashboard(): Promise<void> {
    if (!this.chaosRun.picture) return;
    await writeFile(join(PROJECT, 'docs/dashboard.svg'), drawPanels(this.panels ?? [], this.range()));
  }

  /** From the start until now, in seconds since 1970. */
  private range(): { start: number; end: number } {
    return { start: (performance.timeOrigin + this.startedAtMs) / 1000, end: Date.now() / 1000 };
  }

  private report(): PartReport {
    const rows = Object.entries(SCENARIOS).flatMap(([job, { cause, alerts }]) =>
      alerts.map((alert) => ({ alert, cause, after: this.firedAfter.get(`${job} ${alert}`) })),
    );
    const ofWorking = [...this.firedAfter.keys()].flatMap((name) =>
      name.startsWith(`${WORKING} `) ? [name.slice(WORKING.length + 1)] : [],
    );
    const unexpected = ofWorking.filter(
      (name) => !SCENARIOS[WORKING]?.alerts.includes(name) && !(this.chaosRun.short && ALERTS_OF_SPEED.has(name)),
    );
    return {
      text:
        `Prometheus with \`deploy/alerts.yml\`, where every minute of a window or of \`for\` is a second, scrapes ` +
        `${this.deployments.size} deployments each second; each has another fault.`,
      columns: ['alert', 'cause', 'fires after, s'],
      rows: rows.map(({ alert, cause, after }) => [alert, cause, after?.toFixed(0) ?? 'never']),
      checks: [
        nothing(
          'Alerts without a cause here',
          this.names.filter((name) => !rows.some(({ alert }) => alert === name)),
        ),
        nothing(
          'Alerts that did not fire for their cause',
          rows.flatMap(({ alert, after }) => (after === undefined ? [alert] : [])),
        ),
        nothing('Other alerts of the deployment that works', unexpected),
        nothing('Texts of alerts with a field that is not filled in', [...this.unrendered]),
        nothing(
          `Queries of the dashboard's ${this.panels?.length ?? 0} panels that are invalid or have no data`,
          this.withoutData,
        ),
      ],
    };
  }
}
