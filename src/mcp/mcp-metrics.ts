import { Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';
import type { ErrorCode } from '../domain/errors.js';

/** The tools of the MCP endpoint. */
const TOOL_NAMES = [
  'list_channel_uploads',
  'get_channel_transcripts',
  'get_video_transcript',
  'search_channel_transcripts',
  'get_usage',
  'start_archive_job',
  'get_job',
] as const;
export type ToolName = (typeof TOOL_NAMES)[number];

/** Metrics of the calls of tools. Their HTTP requests have the status 200 even when the tool fails. */
@Injectable()
export class McpMetrics {
  private readonly calls: Counter<'tool' | 'outcome'>;

  constructor(registry: Registry) {
    this.calls = new Counter({
      name: 'ct_mcp_tool_calls_total',
      help: 'Calls of MCP tools: ok, canceled by the client, or the error code of the result.',
      labelNames: ['tool', 'outcome'],
      registers: [registry],
    });
    // A series that starts with its first increment hides that increment from rate().
    for (const tool of TOOL_NAMES) this.calls.inc({ tool, outcome: 'ok' }, 0);
  }

  count(tool: ToolName, outcome: 'ok' | 'canceled' | ErrorCode): void {
    this.calls.inc({ tool, outcome });
  }
}
