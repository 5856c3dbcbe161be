import { execFileSync } from 'node:child_process';

/** What is cut: the packets from and to a TCP port of this machine, optionally of one of its loopback addresses only. */
export interface Link {
  port: number;
  address?: string;
}

const dropped = new Set<Link>();
// A chaos run that is interrupted leaves no rule behind.
process.on('exit', () => [...dropped].forEach(heal));

/** Whether this process may drop packets: as root, with the program `iptables`. */
export function canCut(): boolean {
  try {
    iptables('-L', 'INPUT', '-n');
    return true;
  } catch {
    return false;
  }
}

/** Drops all packets of a link, without a response to either end. */
export function cut(link: Link): void {
  dropped.add(link);
  for (const rule of rulesOf(link)) iptables('-I', 'INPUT', ...rule);
}

export function heal(link: Link): void {
  if (!dropped.delete(link)) return;
  for (const rule of rulesOf(link)) iptables('-D', 'INPUT', ...rule);
}

function rulesOf({ port, address }: Link): string[][] {
  const ends = [
    ['--dport', String(port), ...(address === undefined ? [] : ['-d', address])],
    ['--sport', String(port), ...(address === undefined ? [] : ['-s', address])],
  ];
  return ends.map((end) => ['-i', 'lo', '-p', 'tcp', ...end, '-j', 'DROP']);
}

function iptables(...args: string[]): void {
  execFileSync('iptables', ['-w', ...args], { stdio: 'ignore' });
}
