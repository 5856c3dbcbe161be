import type { Prometheus, Series } from '../../harness/prometheus.js';

/** The parts of a Grafana dashboard's JSON that its queries depend on. */
export interface Dashboard {
  panels: readonly (
    | { type: 'row'; title: string }
    | {
        type: 'timeseries';
        title: string;
        fieldConfig: { defaults: { unit: string } };
        targets: readonly { expr: string; legendFormat: string }[];
      }
  )[];
}

/** A panel with the answers to its queries. */
export interface AnsweredPanel {
  row: string;
  title: string;
  unit: string;
  series: readonly { name: string; samples: Series['samples'] }[];
}

export interface DashboardVariables {
  job: string;
  /** A regular expression, as Grafana makes of the selected processes. */
  instance: string;
}

/** What Grafana calculates from the scrape interval: four scrapes at least. */
const RATE_INTERVAL = '8s';
const STEP_SECONDS = 2;

/** The expression of a panel with Grafana's variables replaced. */
export function expanded(expression: string, { job, instance }: DashboardVariables): string {
  return expression
    .replaceAll('$__rate_interval', RATE_INTERVAL)
    .replaceAll('$job', job)
    .replaceAll('$instance', instance.replaceAll('\\', '\\\\'));
}

/**
 * Sends the queries of all panels.
 *
 * @returns the panels, and the queries that are invalid or have no data
 */
export async function answerPanels(
  prometheus: Prometheus,
  { panels }: Dashboard,
  variables: DashboardVariables,
  range: { start: number; end: number },
): Promise<{ panels: AnsweredPanel[]; findings: string[] }> {
  const answered: AnsweredPanel[] = [];
  const findings: string[] = [];
  let row = '';
  for (const panel of panels) {
    if (panel.type === 'row') {
      row = panel.title;
      continue;
    }
    const series: { name: string; samples: Series['samples'] }[] = [];
    for (const { expr, legendFormat } of panel.targets) {
      const query = expanded(expr, variables);
      try {
        const answers = await prometheus.queryRange(query, { ...range, stepSeconds: STEP_SECONDS });
        if (!answers.some(({ samples }) => samples.some(({ value }) => Number.isFinite(value))))
          findings.push(`${panel.title} has no data: ${query}`);
        series.push(...answers.map(({ labels, samples }) => ({ name: legend(legendFormat, labels), samples })));
      } catch (error) {
        findings.push(`${panel.title}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    answered.push({ row, title: panel.title, unit: panel.fieldConfig.defaults.unit, series });
  }
  return { panels: answered, findings };
}

function legend(format: string, labels: Readonly<Record<string, string>>): string {
  return format.replace(/\{\{(\w+)\}\}/g, (_whole, label: string) => labels[label] ?? '');
}
