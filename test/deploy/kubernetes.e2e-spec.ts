import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { Deployment } from 'kubernetes-models/apps/v1';
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2';
import { Job } from 'kubernetes-models/batch/v1';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Namespace, Service } from 'kubernetes-models/v1';
import ipaddr from 'ipaddr.js';
import { parse, parseAllDocuments } from 'yaml';
import { readEnvironment } from '../../src/config/environment.js';
import { VERSION } from '../../src/config/package.js';
import { isInstalled } from '../harness/programs.js';

const FOLDER = join(import.meta.dirname, '../../deploy/kubernetes');
/** The schemas of Kubernetes' own kinds. A ServiceMonitor is one of the Prometheus operator's. */
const SCHEMAS = { Deployment, HorizontalPodAutoscaler, Job, NetworkPolicy, PodDisruptionBudget, Namespace, Service };

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
}

interface Container {
  image: string;
  envFrom: unknown[];
  securityContext: object;
  lifecycle: { preStop: { exec: { command: string[] } } };
}

interface Pods extends Manifest {
  spec: {
    template: {
      metadata: { labels: Record<string, string> };
      spec: {
        terminationGracePeriodSeconds: number;
        containers: [Container];
      };
    };
  };
}

interface Kustomization {
  resources: string[];
  configMapGenerator: [{ literals: string[] }];
}

const read = (file: string): unknown => parse(readFileSync(join(FOLDER, file), 'utf8'));
const manifests = (folder: string): string[] =>
  readdirSync(join(FOLDER, folder)).filter((file) => file !== 'kustomization.yaml');
const settingsOf = (folder: string): Record<string, string> => {
  const { configMapGenerator } = read(`${folder}/kustomization.yaml`) as Kustomization;
  return Object.fromEntries(configMapGenerator[0].literals.map((literal) => literal.split('=') as [string, string]));
};
const FILES = ['base', 'overlays/example'].flatMap((folder) => manifests(folder).map((file) => `${folder}/${file}`));

interface Policy {
  spec: {
    podSelector: { matchExpressions: [{ key: string; values: string[] }] };
    egress: {
      to?: { ipBlock?: { cidr: string; except?: string[] }; namespaceSelector?: { matchLabels: object } }[];
      ports?: { port: number; endPort?: number }[];
    }[];
  };
}

const isWithin = (address: string, range: string): boolean => {
  const [parsed, block] = [ipaddr.parse(address), ipaddr.parseCIDR(range)];
  return parsed.kind() === block[0].kind() && parsed.match(block);
};

/** Whether pods reach a public or private address, or a namespace with the label of dependencies. */
function isReached(target: string, at: number): boolean {
  const { egress } = (read('base/network-policy.yaml') as Policy).spec;
  return egress.some(({ to, ports }) => {
    const isPort = !ports || ports.some(({ port, endPort = port }) => port <= at && at <= endPort);
    const isTarget =
      !to ||
      to.some(({ ipBlock, namespaceSelector }) => {
        if (target === 'dependency') return namespaceSelector !== undefined;
        if (!ipBlock || !isWithin(target, ipBlock.cidr)) return false;
        return !(ipBlock.except ?? []).some((range) => isWithin(target, range));
      });
    return isPort && isTarget;
  });
}

describe('the Kubernetes manifests', () => {
  it.each([
    ['YouTube and webhooks', '142.250.1.1', 443, true],
    ['a webhook at a high port', '203.0.113.9', 8_443, true],
    ['a proxy', '203.0.113.9', 3_128, true],
    ['YouTube over IPv6', '2a00:1450::1', 443, true],
    ['a name server', '10.0.0.10', 53, true],
    ...[5_432, 6_379, 4_222, 4_318, 4_416, 3_128].map((port) => ['a dependency', 'dependency', port, true] as const),
    ['another PostgreSQL', '203.0.113.9', 5_432, false],
    ['another Redis', '203.0.113.9', 6_379, false],
    ['a private PostgreSQL', '10.0.0.5', 5_432, false],
    ['a private web server', '192.168.1.1', 443, false],
    ["the cloud's metadata", '169.254.169.254', 80, false],
    ['a private address over IPv6', 'fd00::1', 443, false],
    ['SSH', '203.0.113.9', 22, false],
  ])('allow %s (%s, port %i): %s', (_what, target, port, expected) => {
    expect(isReached(target, port)).toBe(expected);
  });

  it('restrict the pods of the service and of the migration', () => {
    const { values } = (read('base/network-policy.yaml') as Policy).spec.podSelector.matchExpressions[0];
    const labels = ['deployment.yaml', 'migration-job.yaml'].map((file) => {
      const { metadata } = (read(`base/${file}`) as Pods).spec.template;
      return metadata.labels['app.kubernetes.io/name'];
    });
    expect(values).toEqual(labels);
  });

  it.each(FILES.filter((file) => !file.endsWith('service-monitor.yaml')))(
    '%s follows the schema of its kind',
    (file) => {
      const manifest = read(file) as Manifest;
      const Kind = SCHEMAS[manifest.kind as keyof typeof SCHEMAS];
      expect(() => new Kind(manifest as never).validate()).not.toThrow();
    },
  );

  it.each(['base', 'overlays/example'])('are all named by the kustomization of %s', (folder) => {
    const { resources } = read(`${folder}/kustomization.yaml`) as Kustomization;
    expect(resources.filter((resource) => !resource.startsWith('..')).sort()).toEqual(manifests(folder).sort());
  });

  it.each(['deployment.yaml', 'migration-job.yaml'])('run %s without privileges and within bounds', (file) => {
    const { spec } = (read(`base/${file}`) as Pods).spec.template;
    expect(spec).toMatchObject({ securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } } });
    expect(spec.containers[0]).toMatchObject({ resources: { limits: { memory: expect.stringMatching(/Mi$/) } } });
    expect(spec.containers[0].securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('give running calls the whole grace period of the service before a pod is killed', () => {
    const { spec } = (read('base/deployment.yaml') as Pods).spec.template;
    const [, waitMs] = /(\d+)\)$/.exec(spec.containers[0].lifecycle.preStop.exec.command.at(-1) ?? '') ?? [];
    const { SHUTDOWN_GRACE_SECONDS: grace } = settingsOf('base');
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(Number(waitMs) / 1000 + Number(grace) + 10);
  });

  it.each(['base', 'overlays/example'])('have settings in %s that the service accepts', (folder) => {
    expect(() => readEnvironment(settingsOf(folder))).not.toThrow();
  });

  const withKubectl = isInstalled('kubectl') ? it : it.skip;
  const rendered = (folder: string): Manifest[] => {
    const text = execFileSync('kubectl', ['kustomize', join(FOLDER, folder)], { encoding: 'utf8' });
    return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
  };
  withKubectl('are the base when kustomize renders the whole folder', () => {
    expect(rendered('.')).toEqual(rendered('base'));
    const files = manifests('base').map((file) => (read(`base/${file}`) as Manifest).kind);
    const kinds = rendered('.').map(({ kind }) => kind);
    expect(kinds.sort()).toEqual([...files, 'ConfigMap'].sort());
  });

  withKubectl('are rendered by kustomize, in one namespace', () => {
    const all = rendered('overlays/example');
    expect(all).toHaveLength(FILES.length + 1);
    expect(new Set(all.filter(({ kind }) => kind !== 'Namespace').map(({ metadata }) => metadata.namespace))).toEqual(
      new Set(['transcripts']),
    );
    const { spec } = (all.find(({ kind }) => kind === 'Deployment') as Pods).spec.template;
    expect(spec.containers[0].image).toBe(`registry.example.com/channel-transcripts:${VERSION}`);
    const settings = all.find(({ kind }) => kind === 'ConfigMap')?.metadata.name;
    expect(spec.containers[0].envFrom).toContainEqual({ configMapRef: { name: settings } });
  });
});
