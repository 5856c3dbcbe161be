import { VIDEOS_PER_CALL_MAX } from '../../domain/plan.js';
import { Field } from '../../http/routes/field.js';
import { As, TextFields } from '../../transcripts/dto/transcripts-query.dto.js';
import { ENTRY_FORMATS, type EntryFormat } from '../../transcripts/response/transcripts-response.js';

/** The query parameters of the operation for one video. */
export class VideoQueryDto extends TextFields {
  @Field.word({
    words: ENTRY_FORMATS,
    description:
      'The format of the response: `json` is the entry; `text` has one line per segment; `srt` (SubRip) and `vtt` (WebVTT) are ' +
      'subtitle files; `markdown` has a heading and paragraphs with links to the second. Of several languages, `text`, `srt` ' +
      'and `vtt` have the first. By default the format that `Accept` names, or `json`.',
  })
  format?: EntryFormat;
}

/** The body of the operation for a list of videos. */
export class VideosBodyDto extends TextFields {
  @Field.texts({
    required: true,
    max: VIDEOS_PER_CALL_MAX,
    rule: `a list of 1 to ${VIDEOS_PER_CALL_MAX} IDs or URLs of videos`,
    description:
      'IDs or URLs of videos. The response has one entry for each, in this order. A video that is listed twice has two ' +
      'entries and is charged once at most.',
    example: ['hl-dinghy__', 'https://www.youtube.com/watch?v=hl-silent__'],
  })
  videos: string[];

  @As()
  as?: 'documents';
}
