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
import { parse, parseAllDocuments } from 'yaml';
import { readEnvironment } from '../../src/config/environment.js';
import { isInstalled } from '../programs.js';

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

describe('the Kubernetes manifests', () => {
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
  withKubectl('are rendered by kustomize, in one namespace', () => {
    const rendered = execFileSync('kubectl', ['kustomize', join(FOLDER, 'overlays/example')], { encoding: 'utf8' });
    const all = parseAllDocuments(rendered).map((document) => document.toJS() as Manifest);
    expect(all).toHaveLength(FILES.length + 1);
    expect(new Set(all.filter(({ kind }) => kind !== 'Namespace').map(({ metadata }) => metadata.namespace))).toEqual(
      new Set(['transcripts']),
    );
    const { spec } = (all.find(({ kind }) => kind === 'Deployment') as Pods).spec.template;
    expect(spec.containers[0].image).toBe('registry.example.com/channel-transcripts:0.1.0');
    const settings = all.find(({ kind }) => kind === 'ConfigMap')?.metadata.name;
    expect(spec.containers[0].envFrom).toContainEqual({ configMapRef: { name: settings } });
  });
});
