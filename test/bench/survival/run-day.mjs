/*
 * One simulated day in this process, described by JSON as the argument: { reader: "service" | "loop", egresses, gateway,
 * badShare, perHour, hours, replicas }, the last optional. Prints the figures as JSON.
 */
import { join } from 'node:path';
import { PROJECT } from '../processes.mjs';
import { runDay } from './day.mjs';
import { openLoop, openReplicas } from './readers.mjs';
import { VirtualPlatform } from './virtual-platform.mjs';
import { VirtualTime } from './virtual-time.mjs';

const scenario = JSON.parse(process.argv[2]);
const { reader, egresses, gateway, badShare, perHour, hours, replicas = 1 } = scenario;
const { REPORTED_BUDGETS } = await import(join(PROJECT, 'dist-tools/test/fake-youtube/budgets.js'));
const budgets = { ...REPORTED_BUDGETS, badShare };
const proxyUrls = gateway ? [gateway] : Array.from({ length: egresses }, (_, index) => `http://egress-${index + 1}:80`);

const time = new VirtualTime();
const platform = await VirtualPlatform.open(time, budgets);
platform.replaceAgents();
// The service is loaded in real time, because importing it reads files.
const { seededRandom } = await import(join(PROJECT, 'dist-tools/test/fake-youtube/catalogue/random.js'));
const read =
  reader !== 'loop' ? await openReplicas(replicas, proxyUrls) : openLoop(platform, proxyUrls, Boolean(gateway));
const startedAt = process.hrtime.bigint();
Math.random = seededRandom(1);
time.install();
const ends = await time.runUntil(runDay(time, read, { perHour, hours }));
const seconds = Number(process.hrtime.bigint() - startedAt) / 1e9;
process.stdout.write(JSON.stringify({ ...ends, ...platform.counts, seconds }));
process.exit(0);
