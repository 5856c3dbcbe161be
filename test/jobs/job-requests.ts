import type { JobDto as Job } from '../../src/jobs/dto/job.dto.js';
import type { ServiceResponse, TestService } from '../harness/service.js';
import { until } from '../harness/until.js';

/** Sends `POST /jobs`. */
export function postJob(
  service: TestService,
  key: string,
  body: unknown,
  headers: Record<string, string | string[]> = {},
): Promise<ServiceResponse> {
  const sent = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json', ...headers };
  return service.request('POST', '/jobs', sent, typeof body === 'string' ? body : JSON.stringify(body));
}

/** Creates a job. @returns its ID */
export async function createJob(service: TestService, key: string, body: unknown): Promise<string> {
  const response = await postJob(service, key, body);
  if (response.status !== 202) throw new Error(`${response.status}: ${response.text}`);
  return (response.body as Job).id;
}

/** Sends a request about a job without a body. */
export function onJob(service: TestService, key: string, method: string, path: string): Promise<ServiceResponse> {
  return service.request(method, `/jobs/${path}`, { Authorization: `Bearer ${key}` });
}

/** Reads a job until it is as wanted. */
export async function waitForJob(
  service: TestService,
  key: string,
  id: string,
  isWanted: (job: Job) => boolean = ({ state }) => state === 'completed',
): Promise<Job> {
  let job: Job | undefined;
  await until(async () => {
    job = (await service.get(`/jobs/${id}`, key)).body as Job;
    return isWanted(job);
  }).catch((error: unknown) => {
    throw new Error(`${String(error)}: ${JSON.stringify(job)}`);
  });
  if (!job) throw new Error('There is no job.');
  return job;
}

/** The lines of an NDJSON body. */
export function linesOf(text: string): any[] {
  if (!text.endsWith('\n')) throw new Error(`The last line is incomplete: ${text.slice(-100)}`);
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);
}
