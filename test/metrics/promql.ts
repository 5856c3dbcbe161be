/** A metric in an expression. */
interface WantedMetric {
  metric: string;
  matchers: { label: string; matches: (value: string) => boolean }[];
  /** Every label that the expression groups or joins by. */
  grouping: string[];
}

const GROUPING = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g;
const WORDS = new Set(['and', 'or', 'unless', 'bool', 'offset']);
/** A name with its optional matchers; a name before a parenthesis is a function. */
const SELECTOR = /(?<![\w.:])([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{([^"{}]*(?:"[^"]*"[^"{}]*)*)\})?(?!\w)(?!\s*\()/g;
const MATCHER = /([a-zA-Z_]\w*)\s*(=~|!~|!=|=)\s*"([^"]*)"/g;

/** Parses the subset of PromQL that the alert rules use. */
export function metricsIn(expression: string): WantedMetric[] {
  const grouping = [...expression.matchAll(GROUPING)].flatMap(([, names = '']) =>
    names.split(/\s*,\s*/).map((n) => n.trim()),
  );
  const rest = expression.replace(GROUPING, ' ').replace(/\[[^\]]*\]/g, ' ');
  return [...rest.matchAll(SELECTOR)]
    .filter(([, name = '']) => !WORDS.has(name))
    .map(([, metric = '', matchers = '']) => ({ metric, matchers: readMatchers(matchers), grouping }));
}

function readMatchers(text: string): WantedMetric['matchers'] {
  return [...text.matchAll(MATCHER)].map(([, label = '', operator = '', value = '']) => {
    const pattern = new RegExp(`^(?:${value})$`);
    const equal = (given: string): boolean => (operator.includes('~') ? pattern.test(given) : given === value);
    return { label, matches: (given) => equal(given) !== operator.startsWith('!') };
  });
}
