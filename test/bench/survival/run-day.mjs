/*
 * One simulated day in this process, described by JSON as the argument: { reader: "service" | "loop", egresses, gateway,
 * badShare, perHour, hours, replicas }, the last optional. Prints the figures as JSON.
 */
import { REPORTED_BUDGETS } from '../../../dist-tools/test/fake-youtube/budgets.js';
import { seededRandom } from '../../../dist-tools/test/fake-youtube/catalogue/random.js';
import { runDay } from './day.mjs';
import { openLoop, openReplicas } from './readers.mjs';
import { VirtualPlatform } from './virtual-platform.mjs';
import { VirtualTime } from './virtual-time.mjs';

const { reader, egresses, gateway, badShare, perHour, hours, replicas = 1 } = JSON.parse(process.argv[2]);
const budgets = { ...REPORTED_BUDGETS, badShare };
const proxyUrls = gateway ? [gateway] : Array.from({ length: egresses }, (_, index) => `http://egress-${index + 1}:80`);

const time = new VirtualTime();
const platform = new VirtualPlatform(time, budgets);
platform.replaceAgent();
// The service is loaded in real time, because importing it reads files.
const read =
  reader !== 'loop' ? await openReplicas(replicas, proxyUrls) : openLoop(platform, proxyUrls, Boolean(gateway));
Math.random = seededRandom(1);
time.install();
const ends = await time.runUntil(runDay(time, read, { perHour, hours }));
process.stdout.write(JSON.stringify({ ...ends, ...platform.counts }));
process.exit(0);
