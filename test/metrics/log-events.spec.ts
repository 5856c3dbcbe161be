import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import ts from 'typescript';

const PROJECT = join(import.meta.dirname, '../..');
const SRC = join(PROJECT, 'src');
/** The function that logs the events of the adapter: its second argument is the name. */
const REPORT = 'report';
const IMPLEMENTATION = 'platform/youtube/event-log.ts';

interface LoggedEvent {
  where: string;
  /** Empty when the types do not state the name. */
  names: string[];
}

/** The texts that an expression can have, by its type; none when the type does not state them. */
function textsOf(node: ts.Expression, checker: ts.TypeChecker): string[] {
  if (ts.isTemplateExpression(node)) {
    let texts = [node.head.text];
    for (const { expression, literal } of node.templateSpans) {
      const parts = textsOf(expression, checker);
      texts = texts.flatMap((before) => parts.map((part) => before + part + literal.text));
    }
    return texts;
  }
  if (ts.isConditionalExpression(node))
    return [...textsOf(node.whenTrue, checker), ...textsOf(node.whenFalse, checker)];
  const type = checker.getTypeAtLocation(node);
  const types = type.isUnion() ? type.types : [type];
  return types.every((each) => each.isStringLiteral()) ? types.map(({ value }) => value) : [];
}

/** Whether a value can be a text; what the types do not state can. */
const isText = (type: ts.Type): boolean =>
  (type.isUnion() ? type.types : [type]).some(
    ({ flags }) => flags & (ts.TypeFlags.StringLike | ts.TypeFlags.Any | ts.TypeFlags.Unknown),
  );

/** Each name of an event in the sources: the property `event` of an object, and the second argument of `report`. */
function loggedEvents(): LoggedEvent[] {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('spec.ts'))
    .map((file) => join(SRC, file));
  // The types of packages are not needed for names, and take most of the time.
  const options = { noResolve: true, types: [], strict: true, target: ts.ScriptTarget.ES2023 };
  const program = ts.createProgram(files, { ...options, module: ts.ModuleKind.NodeNext });
  const checker = program.getTypeChecker();
  const events: LoggedEvent[] = [];
  const add = (node: ts.Expression, file: ts.SourceFile): void => {
    // What is no text is something else, such as the event of a webhook.
    if (!isText(checker.getTypeAtLocation(node))) return;
    const { line } = file.getLineAndCharacterOfPosition(node.getStart());
    events.push({ where: `${file.fileName.slice(SRC.length + 1)}:${line + 1}`, names: textsOf(node, checker) });
  };
  for (const file of program.getSourceFiles()) {
    if (!file.fileName.startsWith(SRC) || file.fileName.endsWith(IMPLEMENTATION)) continue;
    const visit = (node: ts.Node): void => {
      if (ts.isPropertyAssignment(node) && node.name.getText() === 'event') add(node.initializer, file);
      if (ts.isShorthandPropertyAssignment(node) && node.name.getText() === 'event') add(node.name, file);
      if (ts.isCallExpression(node) && node.expression.getText() === REPORT && node.arguments[1])
        add(node.arguments[1], file);
      ts.forEachChild(node, visit);
    };
    visit(file);
  }
  return events;
}
const PAGE = readFileSync(join(PROJECT, 'docs/monitoring.md'), 'utf8');
const [, SECTION = ''] = /\n## Log events\n(.*?)\n## /s.exec(PAGE) ?? [];
const EVENTS = loggedEvents();
const NAMES = new Set(EVENTS.flatMap(({ names }) => names));

describe('the log events of docs/monitoring.md', () => {
  it('have names that the types state', () => {
    expect(EVENTS.filter(({ names }) => names.length === 0)).toEqual([]);
    // By a literal, by a condition, and by a template.
    expect([...NAMES]).toEqual(
      expect.arrayContaining(['bug', 'subscription_state_changed', 'subscription_deleted', 'youtube_pace_learned']),
    );
  });

  it('are all that the service logs', () => {
    expect([...NAMES].filter((name) => !SECTION.includes(`\`${name}\``))).toEqual([]);
  });

  it('are logged by the service', () => {
    // Fields have capitals, metrics a prefix.
    const named = [...SECTION.matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !name.startsWith('ct_') && !NAMES.has(name))).toEqual([]);
  });
});
