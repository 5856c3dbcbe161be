import type { TestService } from '../harness/service.js';

/** One line of `/metrics`. */
export interface Sample {
  name: string;
  labels: Readonly<Record<string, string>>;
  value: number;
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)/g;

/** Reads the text format of Prometheus; throws at a line that is not of it. */
function readExposition(text: string): Sample[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, name = '', labels = '', value = ''] = LINE.exec(line) ?? [];
    const read = [...labels.matchAll(LABEL)];
    if (name === '' || read.map(([whole]) => whole).join('') !== labels) throw new Error(`Not a sample: ${line}`);
    return {
      name,
      labels: Object.fromEntries(read.map(([, key = '', text = '']) => [key, text])),
      value: Number(value),
    };
  });
}

/** The current metrics of a service. */
export async function scrape(service: TestService, headers: Record<string, string> = {}): Promise<Sample[]> {
  const { status, text } = await service.request('GET', '/metrics', headers);
  if (status !== 200) throw new Error(`/metrics answered ${status}: ${text}`);
  return readExposition(text);
}

/** The sum of the samples that have these labels; 0 when there are none. */
export function sumOf(samples: readonly Sample[], name: string, labels: Record<string, string> = {}): number {
  return samples
    .filter((sample) => sample.name === name)
    .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
    .reduce((sum, { value }) => sum + value, 0);
}
